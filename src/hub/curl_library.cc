// Loads libcurl with dlopen and fills the table of its functions.
#include "hub/curl_library.h"

#include <dlfcn.h>

#include <string>

namespace kvasir::hub {
namespace {

constexpr const char* kFile = "libcurl.so.4";
constexpr const char* kHint = "install libcurl 7.85 or later (Debian: libcurl4)";

Result<CurlLibrary> load() {
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return fail(Error::not_found, why == nullptr ? "cannot be loaded" : why, kFile, kHint);
  }
  std::string missing;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(::dlsym(library, name));
    if (*function == nullptr) missing = name;
  };
  CurlLibrary curl;
  find("curl_global_init", &curl.global_init);
  find("curl_easy_init", &curl.easy_init);
  find("curl_easy_cleanup", &curl.easy_cleanup);
  find("curl_easy_reset", &curl.easy_reset);
  find("curl_easy_setopt", &curl.easy_set);
  find("curl_easy_getinfo", &curl.easy_info);
  find("curl_easy_strerror", &curl.easy_error);
  find("curl_multi_init", &curl.multi_init);
  find("curl_multi_cleanup", &curl.multi_cleanup);
  find("curl_multi_add_handle", &curl.multi_add);
  find("curl_multi_remove_handle", &curl.multi_remove);
  find("curl_multi_perform", &curl.multi_perform);
  find("curl_multi_poll", &curl.multi_poll);
  find("curl_multi_info_read", &curl.multi_read);
  find("curl_slist_append", &curl.list_append);
  find("curl_slist_free_all", &curl.list_free);
  find("curl_url", &curl.url_new);
  find("curl_url_cleanup", &curl.url_free);
  find("curl_url_set", &curl.url_set);
  find("curl_url_get", &curl.url_get);
  find("curl_free", &curl.free);
  if (!missing.empty()) return fail(Error::unsupported, "has no " + missing, kFile, kHint);
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return fail(Error::io, "cannot be started", kFile, kHint);
  return curl;
}

}  // namespace

Result<const CurlLibrary*> curl_library() {
  static const Result<CurlLibrary> loaded = load();
  if (!loaded) return tl::unexpected(loaded.error());
  return &*loaded;
}

}  // namespace kvasir::hub
