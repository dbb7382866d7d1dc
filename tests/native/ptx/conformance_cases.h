/// The instructions that conformance.h compares. Approximate ones are tested elsewhere, by their
/// error.
#pragma once

namespace conformance {

inline void add_integer_cases(std::vector<Case>& out) {
    const auto add = [&](const std::string& i, const std::string& r, std::vector<std::string> o,
                         const std::string& tail = "") {
        out.push_back({i, r, std::move(o), tail});
    };
    for (const std::string type : {"u16", "s16", "u32", "s32", "u64", "s64"}) {
        const std::string i = "i" + type.substr(1);
        for (const std::string op : {"add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"})
            add(op + "." + type, i, {i, i});
        for (const std::string op : {"mad.lo", "mad.hi", "sad"})
            add(op + "." + type, i, {i, i, i});
        if (type[0] == 's')
            for (const std::string op : {"abs", "neg"})
                add(op + "." + type, i, {i});
        add("shr." + type, i, {i, "n"});
    }
    for (const std::string type : {"u16", "s16", "u32", "s32"}) {
        const std::string i = "i" + type.substr(1), wide = type.substr(1) == "16" ? "i32" : "i64";
        add("mul.wide." + type, wide, {i, i});
        add("mad.wide." + type, wide, {i, i, wide});
    }
    for (const std::string type : {"u32", "s32"}) {
        for (const std::string half : {"lo", "hi"}) {
            add("mul24." + half + "." + type, "i32", {"i32", "i32"});
            add("mad24." + half + "." + type, "i32", {"i32", "i32", "i32"});
        }
        for (const std::string mode : {"clamp", "wrap"})
            add("szext." + mode + "." + type, "i32", {"i32", "n"});
        for (const std::string other : {"u32", "s32"}) {
            add("dp4a." + type + "." + other, "i32", {"i32", "i32", "i32"});
            for (const std::string half : {"lo", "hi"})
                add("dp2a." + half + "." + type + "." + other, "i32", {"i32", "i32", "i32"});
        }
    }
    add("add.sat.s32", "i32", {"i32", "i32"});
    add("sub.sat.s32", "i32", {"i32", "i32"});
    add("mad.hi.sat.s32", "i32", {"i32", "i32", "i32"});
    add("mad24.hi.sat.s32", "i32", {"i32", "i32", "i32"});
    for (const std::string mode : {"clamp", "wrap"})
        add("bmsk." + mode + ".b32", "i32", {"n", "n"});
    for (const std::string type : {"u16x2", "s16x2"})
        for (const std::string op : {"add", "min", "max"})
            add(op + "." + type, "i32", {"i32", "i32"});
    for (const std::string type : {"s16x2", "s32"})
        for (const std::string op : {"min.relu", "max.relu"})
            add(op + "." + type, "i32", {"i32", "i32"});
    for (const std::string width : {"32", "64"}) {
        const std::string i = "i" + width;
        for (const std::string op : {"popc", "clz"})
            add(op + ".b" + width, "i32", {i});
        add("brev.b" + width, i, {i});
        for (const std::string sign : {"u", "s"}) {
            add("bfind." + sign + width, "i32", {i});
            add("bfind.shiftamt." + sign + width, "i32", {i});
            add("bfe." + sign + width, i, {i, "n", "n"});
        }
        out.push_back({"bfi.b" + width, i, {i, i, "n"}, ", 5"});
        out.push_back({"bfi.b" + width, i, {i, i, "n"}, ", 40"});
    }
    add("fns.b32", "i32", {"i32", "n", "i32"});
    // The carry flag, seen through a second instruction that the tail appends.
    for (const std::string type : {"u32", "s32", "u64", "s64"}) {
        const std::string i = "i" + type.substr(1);
        for (const std::string first : {"add.cc", "sub.cc"}) {
            for (const std::string second : {"addc", "subc"})
                add(first + "." + type, i, {i, i}, "; " + second + "." + type + " %d, %a, %b");
        }
        for (const std::string half : {"lo", "hi"}) {
            add("mad." + half + ".cc." + type, i, {i, i, i}, "; addc." + type + " %d, %d, 0");
            const std::string first = "add.cc." + type + " %d, %a, %b; ";
            add(first + "madc." + half + "." + type, i, {i, i, i});
            add(first + "madc." + half + ".cc." + type, i, {i, i, i},
                "; addc." + type + " %d, %d, 5");
        }
        add("sub.cc." + type, i, {i, i},
            "; addc.cc." + type + " %d, %a, %b; subc." + type + " %d, %d, 3");
    }
}

inline void add_logic_cases(std::vector<Case>& out) {
    const auto add = [&](const std::string& i, const std::string& r, std::vector<std::string> o,
                         const std::string& tail = "") {
        out.push_back({i, r, std::move(o), tail});
    };
    for (const std::string width : {"16", "32", "64"}) {
        const std::string i = "i" + width, b = ".b" + width;
        for (const std::string op : {"and", "or", "xor"})
            add(op + b, i, {i, i});
        for (const std::string op : {"not", "cnot"})
            add(op + b, i, {i});
        add("shl" + b, i, {i, "n"});
        add("shr" + b, i, {i, "n"});
        add("selp" + b, i, {i, i, "p"});
        for (const std::string op : {"eq", "ne"})
            add("setp." + op + b, "p", {i, i});
        add("slct" + b + ".s32", i, {i, i, "i32"});
        add("slct" + b + ".f32", i, {i, i, "f32"});
    }
    add("slct.ftz.b32.f32", "i32", {"i32", "i32", "f32"});
    for (const std::string op : {"and", "or", "xor"})
        add(op + ".pred", "p", {"p", "p"});
    add("not.pred", "p", {"p"});
    for (const std::string table : {"0x96", "0xe8", "0x1b", "0xca", "0x01", "0x80"})
        add("lop3.b32", "i32", {"i32", "i32", "i32"}, ", " + table);
    for (const std::string side : {"l", "r"})
        for (const std::string mode : {"clamp", "wrap"})
            add("shf." + side + "." + mode + ".b32", "i32", {"i32", "i32", "n"});
    add("prmt.b32", "i32", {"i32", "i32", "i32"});
    for (const std::string mode : {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"})
        add("prmt.b32." + mode, "i32", {"i32", "i32", "i32"});
    for (const std::string type : {"u16", "s16", "u32", "s32", "u64", "s64"}) {
        const std::string i = "i" + type.substr(1);
        for (const std::string op : {"eq", "ne", "lt", "le", "gt", "ge"})
            add("setp." + op + "." + type, "p", {i, i});
        if (type[0] == 'u')
            for (const std::string op : {"lo", "ls", "hi", "hs"})
                add("setp." + op + "." + type, "p", {i, i});
    }
    for (const std::string type : {"f32", "f64"}) {
        for (const std::string op : {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu",
                                     "gtu", "geu", "num", "nan"}) {
            add("setp." + op + "." + type, "p", {type, type});
            if (type == "f32") add("setp." + op + ".ftz.f32", "p", {type, type});
        }
    }
    for (const std::string combine : {"and", "or", "xor"}) {
        add("setp.lt." + combine + ".s32", "p", {"i32", "i32", "p"});
        add("set.lt." + combine + ".u32.f32", "i32", {"f32", "f32", "p"});
    }
    for (const std::string to : {"u32", "s32", "f32"})
        for (const std::string from : {"s16", "u32", "s64", "f32", "f64"}) {
            const std::string kind = from[0] == 'f' ? from : "i" + from.substr(1);
            add("set.gt." + to + "." + from, to == "f32" ? "f32" : "i32", {kind, kind});
        }
    add("set.gt.ftz.u32.f32", "i32", {"f32", "f32"});
}

inline void add_float_cases(std::vector<Case>& out) {
    const auto add = [&](const std::string& i, const std::string& r, std::vector<std::string> o,
                         const std::string& tail = "") {
        out.push_back({i, r, std::move(o), tail});
    };
    for (const std::string rounding : {"rn", "rz", "rm", "rp"}) {
        for (const std::string flags : {"", ".ftz", ".sat", ".ftz.sat"}) {
            for (const std::string op : {"add", "sub", "mul"})
                add(op + "." + rounding + flags + ".f32", "f32", {"f32", "f32"});
            add("fma." + rounding + flags + ".f32", "f32", {"f32", "f32", "f32"});
        }
        for (const std::string op : {"add", "sub", "mul", "div"})
            add(op + "." + rounding + ".f64", "f64", {"f64", "f64"});
        add("fma." + rounding + ".f64", "f64", {"f64", "f64", "f64"});
        for (const std::string flags : {"", ".ftz"}) {
            add("div." + rounding + flags + ".f32", "f32", {"f32", "f32"});
            for (const std::string op : {"rcp", "sqrt"})
                add(op + "." + rounding + flags + ".f32", "f32", {"f32"});
        }
        for (const std::string op : {"rcp", "sqrt"})
            add(op + "." + rounding + ".f64", "f64", {"f64"});
    }
    for (const std::string flags : {"", ".ftz"}) {
        for (const std::string op : {"abs", "neg"})
            add(op + flags + ".f32", "f32", {"f32"});
        for (const std::string op : {"min", "max"}) {
            for (const std::string nan : {"", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"})
                add(op + flags + nan + ".f32", "f32", {"f32", "f32"});
        }
    }
    for (const std::string op : {"abs", "neg"})
        add(op + ".f64", "f64", {"f64"});
    for (const std::string op : {"min", "max", "copysign"})
        add(op + ".f64", "f64", {"f64", "f64"});
    add("copysign.f32", "f32", {"f32", "f32"});
    for (const std::string type : {"f32", "f64"}) {
        for (const std::string is :
             {"finite", "infinite", "number", "notanumber", "normal", "subnormal"})
            add("testp." + is + "." + type, "p", {type});
    }
}

inline void add_half_cases(std::vector<Case>& out) {
    const auto add = [&](const std::string& i, const std::string& r, std::vector<std::string> o,
                         const std::string& tail = "") {
        out.push_back({i, r, std::move(o), tail});
    };
    for (const std::string type : {"f16", "f16x2"}) {
        for (const std::string flags : {"", ".ftz", ".sat", ".ftz.sat"}) {
            for (const std::string op : {"add", "sub", "mul"})
                add(op + flags + "." + type, type, {type, type});
            add("fma.rn" + flags + "." + type, type, {type, type, type});
        }
        add("fma.rn.relu." + type, type, {type, type, type});
        add("fma.rn.ftz.relu." + type, type, {type, type, type});
    }
    for (const std::string type : {"bf16", "bf16x2"}) {
        for (const std::string op : {"add", "sub", "mul"})
            add(op + "." + type, type, {type, type});
        add("fma.rn." + type, type, {type, type, type});
        add("fma.rn.relu." + type, type, {type, type, type});
    }
    for (const std::string type : {"f16", "f16x2", "bf16", "bf16x2"}) {
        for (const std::string op : {"neg", "abs"})
            add(op + "." + type, type, {type});
        for (const std::string op : {"min", "max"}) {
            for (const std::string nan : {"", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"})
                add(op + nan + "." + type, type, {type, type});
        }
    }
    for (const std::string op : {"neg", "abs"})
        add(op + ".ftz.f16", "f16", {"f16"});
    for (const std::string op : {"min", "max"})
        add(op + ".ftz.f16x2", "f16x2", {"f16x2", "f16x2"});
    for (const std::string op :
         {"eq", "ne", "lt", "ge", "equ", "neu", "ltu", "geu", "num", "nan"}) {
        add("setp." + op + ".f16", "p", {"f16", "f16"});
        add("setp." + op + ".bf16", "p", {"bf16", "bf16"});
    }
    add("setp.lt.ftz.f16", "p", {"f16", "f16"});
    add("set.lt.f16.f16", "f16", {"f16", "f16"});
    add("set.lt.f16x2.f16x2", "f16x2", {"f16x2", "f16x2"});
    add("set.gtu.u32.f16", "i32", {"f16", "f16"});
    add("set.gtu.u16.f16", "i16", {"f16", "f16"});
}

inline void add_convert_cases(std::vector<Case>& out) {
    const auto add = [&](const std::string& i, const std::string& r, std::vector<std::string> o,
                         const std::string& tail = "") {
        out.push_back({i, r, std::move(o), tail});
    };
    const auto kind = [](const std::string& type) -> std::string {
        if (type[0] == 'f') return type;
        return type.substr(1) == "8" ? "i32" : "i" + type.substr(1);
    };
    const std::vector<std::string> integers = {"u8",  "s8",  "u16", "s16",
                                               "u32", "s32", "u64", "s64"};
    for (const std::string& to : integers) {
        for (const std::string& from : integers) {
            if (to != from) add("cvt." + to + "." + from, kind(to), {kind(from)});
            // .sat is for conversions that can overflow.
            const int to_bits = std::stoi(to.substr(1)), from_bits = std::stoi(from.substr(1));
            const bool fits =
                to[0] == from[0] ? to_bits >= from_bits : to[0] == 's' && to_bits > from_bits;
            if (!fits) add("cvt.sat." + to + "." + from, kind(to), {kind(from)});
        }
        for (const std::string from : {"f16", "f32", "f64"}) {
            for (const std::string rounding : {"rni", "rzi", "rmi", "rpi"}) {
                add("cvt." + rounding + "." + to + "." + from, kind(to), {from});
                if (from == "f32")
                    add("cvt." + rounding + ".ftz." + to + "." + from, kind(to), {from});
            }
        }
        for (const std::string float_type : {"f16", "f32", "f64"}) {
            for (const std::string rounding : {"rn", "rz", "rm", "rp"})
                add("cvt." + rounding + "." + float_type + "." + to, float_type, {kind(to)});
            add("cvt.rn.sat." + float_type + "." + to, float_type, {kind(to)});
        }
    }
    for (const std::string type : {"f16", "f32", "f64"}) {
        for (const std::string rounding : {"rni", "rzi", "rmi", "rpi"}) {
            add("cvt." + rounding + "." + type + "." + type, type, {type});
            add("cvt." + rounding + ".sat." + type + "." + type, type, {type});
        }
        add("cvt.sat." + type + "." + type, type, {type});
    }
    add("cvt.ftz.f32.f32", "f32", {"f32"});
    add("cvt.ftz.sat.f32.f32", "f32", {"f32"});
    add("cvt.rni.ftz.f32.f32", "f32", {"f32"});
    for (const std::string rounding : {"rn", "rz", "rm", "rp"}) {
        for (const std::string flags : {"", ".sat", ".ftz", ".ftz.sat"})
            add("cvt." + rounding + flags + ".f32.f64", "f32", {"f64"});
        add("cvt." + rounding + ".f16.f32", "f16", {"f32"});
        add("cvt." + rounding + ".sat.f16.f32", "f16", {"f32"});
        add("cvt." + rounding + ".ftz.f16.f32", "f16", {"f32"});
        add("cvt." + rounding + ".f16.f64", "f16", {"f64"});
    }
    for (const std::string flags : {"", ".sat", ".ftz"}) {
        add("cvt" + flags + ".f64.f32", "f64", {"f32"});
        add("cvt" + flags + ".f32.f16", "f32", {"f16"});
    }
    add("cvt.f64.f16", "f64", {"f16"});
    for (const std::string rounding : {"rn", "rz"}) {
        for (const std::string flags : {"", ".relu"}) {
            add("cvt." + rounding + flags + ".bf16.f32", "bf16", {"f32"});
            add("cvt." + rounding + flags + ".f16.f32", "f16", {"f32"});
            add("cvt." + rounding + flags + ".bf16x2.f32", "bf16x2", {"f32", "f32"});
            add("cvt." + rounding + flags + ".f16x2.f32", "f16x2", {"f32", "f32"});
        }
    }
    add("cvt.f32.bf16", "f32", {"bf16"});
    add("cvt.rna.tf32.f32", "i32", {"f32"});
    for (const std::string type : {"e4m3x2", "e5m2x2"}) {
        for (const std::string flags : {"", ".relu"}) {
            add("cvt.rn.satfinite" + flags + "." + type + ".f32", "i16", {"f32", "f32"});
            add("cvt.rn.satfinite" + flags + "." + type + ".f16x2", "i16", {"f16x2"});
            add("cvt.rn" + flags + ".f16x2." + type, "f16x2", {"i16"});
        }
    }
    for (const std::string type : {"u16", "s16", "u32", "s32", "u64", "s64"}) {
        add("cvt.rn.bf16." + type, "bf16", {kind(type)});
        add("cvt.rzi." + type + ".bf16", kind(type), {"bf16"});
    }
    for (const std::string type : {"u16", "s16"})
        add("cvt.pack.sat." + type + ".s32", "i32", {"i32", "i32"});
    for (const std::string type : {"u8", "s8"})
        add("cvt.pack.sat." + type + ".s32.b32", "i32", {"i32", "i32", "i32"});
}

inline void add_video_cases(std::vector<Case>& out) {
    const auto add = [&](const std::string& i, std::size_t operands) {
        out.push_back({i, "i32", std::vector<std::string>(operands, "i32"), ""});
    };
    for (const std::string signs :
         {".u32.u32.u32", ".s32.s32.s32", ".s32.u32.s32", ".u32.s32.u32"}) {
        for (const std::string op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax"}) {
            add(op + signs, 2);
            add(op + signs + ".sat", 2);
            add(op + signs + ".sat.add", 3);
            add(op + signs + ".max", 3);
            for (const std::string parts : {"2", "4"}) {
                for (const std::string end : {"", ".sat", ".add"})
                    add(op + parts + signs + end, 3);
            }
        }
        for (const std::string end : {"", ".sat", ".shr7", ".sat.shr15"})
            add("vmad" + signs + end, 3);
    }
    for (const std::string op : {"vshl", "vshr"}) {
        for (const std::string signs : {".u32.u32.u32", ".s32.s32.u32", ".s32.u32.u32"}) {
            for (const std::string mode : {".clamp", ".wrap"}) {
                add(op + signs + mode, 2);
                add(op + signs + ".sat" + mode, 2);
                add(op + signs + mode + ".min", 3);
            }
        }
    }
    for (const std::string how : {"eq", "ne", "lt", "le", "gt", "ge"}) {
        add("vset.s32.u32." + how, 2);
        add("vset.u32.u32." + how + ".add", 3);
    }
}

/// What no card has been asked yet; to be recorded, then moved to all_cases().
inline std::vector<Case> unrecorded_cases() {
    std::vector<Case> cases;
    add_video_cases(cases);
    for (const std::string type : {"f16", "f16x2", "bf16", "bf16x2"}) {
        for (const std::string relu : {"", ".relu"})
            cases.push_back({"fma.rn.oob" + relu + "." + type, type, {type, type, type}, ""});
    }
    for (const std::string op : {"min", "max"}) {
        cases.push_back({op + ".s32.relu", "i32", {"i32", "i32"}, ""});
        cases.push_back({op + ".s16x2.relu", "i32", {"i32", "i32"}, ""});
    }
    return cases;
}

inline std::vector<Case> all_cases() {
    std::vector<Case> cases;
    add_integer_cases(cases);
    add_logic_cases(cases);
    add_float_cases(cases);
    add_half_cases(cases);
    add_convert_cases(cases);
    return cases;
}

} // namespace conformance
