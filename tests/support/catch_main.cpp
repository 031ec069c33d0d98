// Catch2 2's main function and implementation, compiled once for all suites. Version 3 has both in its library.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#endif
#include "support/catch.hpp"
