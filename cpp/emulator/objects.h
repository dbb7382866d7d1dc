#pragma once

#include "emulator/api.h"
#include "emulator/handle_table.h"

namespace cudamod::emulator {

struct Context;
struct Stream;
struct Event;
struct Pool;
struct Library;
struct Kernel;
struct Function;
struct Module;
struct UserObject;
struct Link;
struct Graph;
struct GraphNode;
struct GraphExec;
struct PhysicalMemory;

/// The live objects of the whole driver. Guarded by the driver's lock.
struct Objects {
    HandleTable<CUcontext, Context> contexts{0};
    HandleTable<CUstream, Stream> streams{1};
    HandleTable<CUevent, Event> events{2};
    HandleTable<CUmemoryPool, Pool> pools{3};
    HandleTable<CUlibrary, Library> libraries{4};
    HandleTable<CUkernel, Kernel> kernels{5};
    HandleTable<CUfunction, Function> functions{6};
    HandleTable<CUmodule, Module> modules{7};
    HandleTable<CUuserObject, UserObject> user_objects{8};
    HandleTable<CUlinkState, Link> links{12};
    HandleTable<CUgraph, Graph> graphs{13};
    HandleTable<CUgraphNode, GraphNode> graph_nodes{14};
    HandleTable<CUgraphExec, GraphExec> graph_execs{15};
    HandleTable<PhysicalMemory*, PhysicalMemory> physical_memory{11}; ///< handles are numbers
};

Objects& objects();

} // namespace cudamod::emulator
