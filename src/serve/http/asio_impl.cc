// The compiled part of Asio and Beast, once for all that include their headers.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
