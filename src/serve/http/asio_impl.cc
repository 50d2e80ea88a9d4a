// Compiles the non-template parts of Asio and Beast once for all files that include their headers.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
