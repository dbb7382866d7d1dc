#include "emulator/profile.h"

#include "emulator/api.h"

namespace cudamod::emulator {
namespace {

// Read off one NVIDIA H200 with driver 13.0: {attribute, value}. The other devices start from these
// and change what public figures (the programming guide's table of technical specifications) say.
const std::map<int, int> kH200Attributes = {
    {1, 1024},        {2, 1024},     {3, 1024},       {4, 64},          {5, 2147483647},
    {6, 65535},       {7, 65535},    {8, 49152},      {9, 65536},       {10, 32},
    {11, 2147483647}, {12, 65536},   {13, 1980000},   {14, 512},        {15, 1},
    {16, 132},        {17, 0},       {18, 0},         {19, 1},          {20, 0},
    {21, 131072},     {22, 131072},  {23, 65536},     {24, 16384},      {25, 16384},
    {26, 16384},      {27, 32768},   {28, 32768},     {29, 2048},       {30, 512},
    {31, 1},          {32, 1},       {33, 0},         {34, 6},          {35, 0},
    {36, 3201000},    {37, 6016},    {38, 62914560},  {39, 2048},       {40, 3},
    {41, 1},          {42, 32768},   {43, 2048},      {44, 1},          {45, 32768},
    {46, 32768},      {47, 8192},    {48, 8192},      {49, 32768},      {50, 0},
    {51, 32},         {52, 32768},   {53, 32768},     {54, 2046},       {55, 32768},
    {56, 131072},     {57, 65536},   {58, 16384},     {59, 16384},      {60, 16384},
    {61, 32768},      {62, 2048},    {63, 32768},     {64, 32768},      {65, 2048},
    {66, 32768},      {67, 32768},   {68, 2046},      {69, 268435456},  {70, 131072},
    {71, 65000},      {72, 2097120}, {73, 32768},     {74, 32768},      {75, 9},
    {76, 0},          {77, 32768},   {78, 1},         {79, 1},          {80, 1},
    {81, 233472},     {82, 65536},   {83, 1},         {84, 0},          {85, 0},
    {86, 0},          {87, 2},       {88, 0},         {89, 1},          {90, 1},
    {91, 1},          {92, 0},       {93, 0},         {94, 0},          {95, 1},
    {96, 1},          {97, 232448},  {98, 0},         {99, 1},          {100, 0},
    {101, 0},         {102, 1},      {103, 1},        {104, 0},         {105, 0},
    {106, 32},        {107, 1},      {108, 39321600}, {109, 134217728}, {110, 1},
    {111, 1024},      {112, 1},      {113, 1},        {114, 1},         {115, 1},
    {116, 1},         {117, 1},      {118, 100},      {119, 9},         {120, 1},
    {121, 1},         {122, 1},      {123, 1},        {124, 1},         {125, 1},
    {126, 4},         {127, 1},      {128, 1},        {129, 1},         {130, 0},
    {131, -1},        {132, 0},      {133, 0},        {134, 0},         {135, 0},
    {136, 0},         {137, 0},      {138, 0},        {139, 590680286}, {140, 415174878},
    {141, 1},         {142, 1},      {143, 0},        {144, 1},         {145, 1},
    {146, 0},         {147, 0},
};

/// The public figures that differ between architectures.
struct Figures {
    const char* architecture;
    const char* name;
    int major, minor;
    int multiprocessors, clock_khz, memory_khz, bus_bits, l2_bytes;
    int threads_per_sm, blocks_per_sm, shared_per_sm_kib;
    int double_ratio; ///< single to double precision performance
};

constexpr Figures kFigures[] = {
    {"sm_75", "NVIDIA T4 (emulated)", 7, 5, 40, 1590000, 5001000, 256, 4 << 20, 1024, 16, 64, 32},
    {"sm_80", "NVIDIA A100 (emulated)", 8, 0, 108, 1410000, 1215000, 5120, 40 << 20, 2048, 32, 164,
     2},
    {"sm_86", "NVIDIA RTX 3090 (emulated)", 8, 6, 82, 1695000, 9751000, 384, 6 << 20, 1536, 16, 100,
     32},
    {"sm_89", "NVIDIA RTX 4090 (emulated)", 8, 9, 128, 2520000, 10501000, 384, 72 << 20, 1536, 24,
     100, 64},
    {"sm_100", "NVIDIA B200 (emulated)", 10, 0, 148, 1965000, 3996000, 8192, 126 << 20, 2048, 32,
     228, 2},
    {"sm_120", "NVIDIA RTX 5090 (emulated)", 12, 0, 170, 2407000, 14001000, 512, 96 << 20, 1536, 24,
     100, 64},
};

Profile h200() {
    return {"sm_90", "NVIDIA H200 (emulated)", 9, 0, 'a', kH200Attributes, 8};
}

Profile from_figures(const Figures& figures) {
    Profile profile{
        figures.architecture, figures.name, figures.major, figures.minor, 0, kH200Attributes, 0};
    if (figures.major >= 9) {
        profile.suffix = 'a';
        profile.max_cluster = 8;
    }
    const bool ampere = figures.major >= 8, hopper = figures.major >= 9;
    const int shared_per_sm = figures.shared_per_sm_kib << 10;
    const int reserved = ampere ? 1024 : 0;
    auto& set = profile.attributes;
    set[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = figures.major;
    set[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = figures.minor;
    set[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = figures.multiprocessors;
    set[CU_DEVICE_ATTRIBUTE_CLOCK_RATE] = figures.clock_khz;
    set[CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE] = figures.memory_khz;
    set[CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH] = figures.bus_bits;
    set[CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE] = figures.l2_bytes;
    set[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = figures.threads_per_sm;
    set[CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] = figures.blocks_per_sm;
    set[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = shared_per_sm;
    set[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = shared_per_sm - reserved;
    set[CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK] = reserved;
    set[CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO] = figures.double_ratio;
    set[CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE] = ampere ? figures.l2_bytes / 16 * 11 : 0;
    set[CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE] = ampere ? 134217728 : 0;
    set[CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH] = hopper;
    set[CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED] = hopper;
    set[CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT] = hopper ? 4 : 1;
    return profile;
}

const std::vector<Profile>& all_profiles() {
    static const std::vector<Profile>* const profiles = [] {
        auto* made = new std::vector<Profile>{h200()};
        for (const Figures& figures : kFigures)
            made->push_back(from_figures(figures));
        return made;
    }();
    return *profiles;
}

} // namespace

const Profile* find_profile(const std::string& architecture) {
    for (const Profile& profile : all_profiles()) {
        if (profile.architecture == architecture) return &profile;
    }
    return nullptr;
}

std::vector<std::string> profile_names() {
    std::vector<std::string> names;
    for (const Profile& profile : all_profiles())
        names.push_back(profile.architecture);
    return names;
}

} // namespace cudamod::emulator
