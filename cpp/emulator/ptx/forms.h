/// The rows of the instruction table, by family.
#pragma once

#include "emulator/ptx/form.h"

namespace cudamod::emulator::ptx {

void add_arithmetic_forms(std::vector<FormRow>& rows);
void add_logic_forms(std::vector<FormRow>& rows);
void add_data_forms(std::vector<FormRow>& rows);
void add_async_forms(std::vector<FormRow>& rows);
void add_matrix_forms(std::vector<FormRow>& rows);
void add_control_forms(std::vector<FormRow>& rows);

} // namespace cudamod::emulator::ptx
