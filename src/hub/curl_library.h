// Loads libcurl at first use. Linking it with its dependencies would double the memory and the start-up time of every
// other command. http.h makes the requests.
#pragma once

#include <curl/curl.h>

#include <kvasir/result.h>

namespace kvasir::hub {

/// The functions of libcurl that this folder calls.
struct CurlLibrary {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_setopt) easy_set = nullptr;
  decltype(&::curl_easy_getinfo) easy_info = nullptr;
  decltype(&::curl_easy_strerror) easy_error = nullptr;
  decltype(&::curl_multi_init) multi_init = nullptr;
  decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&::curl_multi_add_handle) multi_add = nullptr;
  decltype(&::curl_multi_remove_handle) multi_remove = nullptr;
  decltype(&::curl_multi_perform) multi_perform = nullptr;
  decltype(&::curl_multi_poll) multi_poll = nullptr;
  decltype(&::curl_multi_info_read) multi_read = nullptr;
  decltype(&::curl_slist_append) list_append = nullptr;
  decltype(&::curl_slist_free_all) list_free = nullptr;
  decltype(&::curl_url) url_new = nullptr;
  decltype(&::curl_url_cleanup) url_free = nullptr;
  decltype(&::curl_url_set) url_set = nullptr;
  decltype(&::curl_url_get) url_get = nullptr;
  decltype(&::curl_free) free = nullptr;
};

/// Loads libcurl at the first call and never unloads it. Errors: libcurl is not installed, or is too old.
Result<const CurlLibrary*> curl_library();

}  // namespace kvasir::hub
