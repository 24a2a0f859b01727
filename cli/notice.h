// The file NOTICE: what is linked, and under which licences.
#pragma once

namespace sherd {

/// Its text, which the build puts into the program.
extern const char* const kNotice;

}  // namespace sherd
