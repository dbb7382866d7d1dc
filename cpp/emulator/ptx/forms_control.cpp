#include "emulator/ptx/forms.h"

namespace cudamod::emulator::ptx {

void add_control_forms(std::vector<FormRow>& rows) {
    using enum Family;
    static constexpr FormRow kRows[] = {
        {"bra", "uni?", "L", Control},
        {"brx", "idx uni?", "Su32 L", Control, 30, 60},
        {"call", "uni?", "F", Control},
        {"ret", "uni?", "", Control},
        {"exit", "", "", Control},
        {"trap", "", "", Control},
        {"brkpt", "", "", Control},
        {"nanosleep", "u32", "Su32", Control, 70, 63},
        {"pmevent", "", "I", Nothing},
        {"pmevent", "mask", "I", Nothing},
        {"setmaxnreg", "inc|dec sync aligned u32", "I", Control, 90, 80, true},
        {"griddepcontrol", "launch_dependents|wait", "", Nothing, 90, 78},

        {"bar", "cta? sync", "Su32 Su32?", Barrier},
        {"bar", "cta? arrive", "Su32 Su32", Barrier},
        {"bar", "cta? red popc u32", "D0 Su32 Sp", Barrier},
        {"bar", "cta? red popc u32", "D0 Su32 Su32 Sp", Barrier},
        {"bar", "cta? red and|or pred", "Dp Su32 Sp", Barrier},
        {"bar", "cta? red and|or pred", "Dp Su32 Su32 Sp", Barrier},
        {"bar", "warp sync", "Su32", Warp, 30, 60},
        {"barrier", "cta? sync aligned?", "Su32 Su32?", Barrier, 30, 60},
        {"barrier", "cta? arrive aligned?", "Su32 Su32", Barrier, 30, 60},
        {"barrier", "cta? red popc aligned? u32", "D0 Su32 Sp", Barrier, 30, 60},
        {"barrier", "cta? red popc aligned? u32", "D0 Su32 Su32 Sp", Barrier, 30, 60},
        {"barrier", "cta? red and|or aligned? pred", "Dp Su32 Sp", Barrier, 30, 60},
        {"barrier", "cta? red and|or aligned? pred", "Dp Su32 Su32 Sp", Barrier, 30, 60},
        {"barrier", "cluster arrive release|relaxed? aligned?", "", Barrier, 90, 78},
        {"barrier", "cluster wait acquire? aligned?", "", Barrier, 90, 78},

        {"shfl", "sync up|down|bfly|idx b32", "R0 S0 Su32 Su32 Su32", Warp, 30, 60},
        {"shfl", "up|down|bfly|idx b32", "R0 S0 Su32 Su32", Warp},
        {"vote", "sync all|any|uni pred", "Dp Sp Su32", Warp, 30, 60},
        {"vote", "sync ballot b32", "D0 Sp Su32", Warp, 30, 60},
        {"vote", "all|any|uni pred", "Dp Sp", Warp},
        {"vote", "ballot b32", "D0 Sp", Warp},
        {"match", "any sync b32|b64", "Db32 S0 Su32", Warp, 70, 60},
        {"match", "all sync b32|b64", "Rb32 S0 Su32", Warp, 70, 60},
        {"redux", "sync add|min|max u32|s32", "D0 S0 Su32", Warp, 80, 70},
        {"redux", "sync and|or|xor b32", "D0 S0 Su32", Warp, 80, 70},
        {"elect", "sync", "Rb32 Su32", Warp, 90, 80},
    };
    rows.insert(rows.end(), std::begin(kRows), std::end(kRows));
}

} // namespace cudamod::emulator::ptx
