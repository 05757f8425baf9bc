#ifndef IMPI_TESTER_LABELS_H_
#define IMPI_TESTER_LABELS_H_

#include <optional>
#include <string>

#include "impi/wire/command.h"

namespace weft::impi::tester {

// The label of version 0.0 with this name, such as "IMPI_C_NHOSTS".
std::optional<Label> FindLabel(const std::string& name);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_LABELS_H_
