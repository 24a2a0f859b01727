// Where prepared data is kept between runs.
#pragma once

#include <string>

namespace sherd {

/// $XDG_CACHE_HOME/sherd or ~/.cache/sherd; without a home that can be written, a folder of this
/// user's among the temporary files. Made if it is not there. throws io if none of them can be
/// written
std::string default_cache_folder();

/// The same for given values of XDG_CACHE_HOME, HOME (either may be empty) and the folder of
/// temporary files.
std::string choose_cache_folder(const std::string& xdg_cache_home, const std::string& home,
                                const std::string& temporary);

}  // namespace sherd
