//! bowstring.hpp by itself, without exceptions, and beside other C++ headers in every order.

use std::path::{Path, PathBuf};

use super::{DLPACKS, Dialect, Dlpack, Folders, WARNINGS, complaint, in_parallel, permutations};
use crate::Result;
use crate::context::Context;
use crate::job::Job;
use crate::tally::Tally;
use crate::workspace::{make_folder, write};

/// The headers that every order has. Either of DLPack's comes to them.
const HEADERS: [&str; 4] =
    ["bowstring.hpp", "nanoarrow/nanoarrow.hpp", "nanoarrow/nanoarrow_device.h", "arrow/c/abi.h"];
/// Each of ours has to compile as the first that is included.
const OURS: [&str; 8] = [
    "bowstring.hpp",
    "bowstring/result.hpp",
    "bowstring/owners.hpp",
    "bowstring/arrays.hpp",
    "bowstring/devices.hpp",
    "bowstring/tensors.hpp",
    "bowstring/validate.hpp",
    "bowstring/streams.hpp",
];
/// The whole of Arrow C++, which takes so long that it is not in the orders.
const ARROW: [&str; 2] = ["arrow/api.h", "arrow/c/bridge.h"];

/// Of the orders every so manieth is compiled: each header is first, last and beside each other in some of them.
const SOME: usize = 14;

/// What our headers are held to beyond the usual. Others' are system headers here.
const STRICT: [&str; 2] = ["-Wshadow", "-Wconversion"];
/// What projects turn off.
const TURNED_OFF: [&str; 2] = ["-fno-exceptions", "-fno-rtti"];

/// Compiled once for all orders, because it takes longer than all else. What is included alone comes without it.
const STANDARD: &str = "#include <atomic>\n#include <cstring>\n#include <exception>\n#include <iterator>\n\
    #include <memory>\n#include <new>\n#include <optional>\n#include <stdexcept>\n#include <string>\n\
    #include <string_view>\n#include <type_traits>\n#include <utility>\n#include <variant>\n#include <vector>\n";

/// Structs of every header, where they meet.
const USE: &str = "#include \"abi_layout.h\"
ABI_ARROW_LAYOUT;
ABI_ASYNC_LAYOUT;
ABI_DEVICE_NUMBERS;
ABI_DLPACK_LAYOUT;
inline unsigned of_tensors(const bowstring::unique_tensor& a, const bowstring::unique_legacy_tensor& b) {
  return a->version.major + static_cast<unsigned>(b->dl_tensor.ndim);
}
inline std::int64_t of_arrays(bowstring::unique_device_array raw, bowstring::unique_schema schema) {
  nanoarrow::UniqueArray array(&raw->array);
  nanoarrow::UniqueSchema type(schema.get());
  auto host = bowstring::unique_host_array::take(array.get());
  return bowstring::array::import(std::move(host), bowstring::unique_schema::take(type.get())).length();
}
";

/// A fault that has to be found, or the flags that find it do nothing.
struct Fault {
    code: &'static str,
    flags: &'static [&'static str],
    says: &'static str,
}

const FAULTS: [Fault; 3] = [
    Fault { code: "inline int f(long n) { return n; }", flags: &STRICT, says: "conversion" },
    Fault {
        code: "inline int f(int n) { for (;;) { int n = 1; return n; } }",
        flags: &STRICT,
        says: "shadow",
    },
    Fault { code: "inline void f() { throw 1; }", flags: &TURNED_OFF, says: "exception" },
];

/// One count for each run of a compiler, and one for each fault.
pub(super) fn check(
    context: &Context,
    folder: &Path,
    folders: &Folders,
    dialects: &[Dialect],
) -> Result<Tally> {
    let mut tally = Tally::default();
    let precompiled = dialects.iter().map(|dialect| precompile(folder, *dialect));
    for (name, made) in in_parallel(precompiled.collect::<Result<_>>()?)? {
        made.map_err(|error| format!("{name}: {error}"))?;
    }
    let mut work = beside_others(folder, folders, dialects)?;
    work.extend(alone(folder, folders, dialects)?);
    for (name, result) in in_parallel(work)? {
        tally.count(complaint(&name, &result, &context.log)?);
    }
    for dialect in dialects {
        for fault in &FAULTS {
            let file = own_folder(folder, *dialect).join("fault.cc");
            write(&file, &format!("#include <bowstring.hpp>\n{}\n", fault.code))?;
            let result = command(*dialect, folders, fault.flags).arg(&file).output();
            let found = result.is_err_and(|error| error.contains(fault.says));
            tally.expect(found, || format!("{}: {} was not refused", dialect.name(), fault.code));
        }
    }
    Ok(tally)
}

/// Each of some orders is compiled once; which compiler, standard and DLPack it has takes turns.
fn beside_others(folder: &Path, folders: &Folders, dialects: &[Dialect]) -> Result<Vec<(String, Job)>> {
    let mut work = Vec::new();
    let turns: Vec<_> =
        dialects.iter().flat_map(|dialect| DLPACKS.iter().map(|dlpack| (*dialect, dlpack))).collect();
    for (turn, (dialect, dlpack)) in turns.iter().enumerate() {
        let files = write_orders(folder, *dialect, dlpack, turn, turns.len())?;
        let job = command(*dialect, folders, &STRICT);
        let job = if dialect.compiler == "g++" { job.arg("-Winvalid-pch") } else { job };
        let job = job.arg("-include").arg(own_folder(folder, *dialect).join("standard.h"));
        let name = format!("bowstring.hpp, {}, {}", dialect.name(), dlpack.name);
        work.push((name, job.args(&files)));
    }
    Ok(work)
}

/// The headers by themselves, with and without exceptions, and before and after the whole of Arrow C++.
fn alone(folder: &Path, folders: &Folders, dialects: &[Dialect]) -> Result<Vec<(String, Job)>> {
    let mut work = Vec::new();
    for dialect in dialects {
        let own = own_folder(folder, *dialect);
        for flags in [[].as_slice(), &TURNED_OFF] {
            let mut files = Vec::new();
            // All of them are in the first, and have the same to be turned off.
            let headers = if flags.is_empty() { OURS.as_slice() } else { &OURS[..1] };
            for header in headers {
                let file = own.join(format!("alone_{}.cc", header.replace('/', "_")));
                write(&file, &format!("#include <{header}>\n#include <{header}>\n#include <bowstring.h>\n"))?;
                files.push(file);
            }
            let name = format!("bowstring.hpp alone, {} {}", dialect.name(), flags.join(" "));
            // A process a file: clang 14 crashes over a second one of this standard.
            work.push((name, command(*dialect, folders, &STRICT).args(flags).args(&files)));
        }
        // Arrow C++ is written for this standard.
        if dialect.standard == "c++20" {
            let before = ["bowstring.hpp", ARROW[0], ARROW[1]];
            let after = [ARROW[0], ARROW[1], "bowstring.hpp"];
            for (number, order) in [before, after].iter().enumerate() {
                let file = own.join(format!("arrow_{number}.cc"));
                write(&file, &includes(order))?;
                let name = format!("bowstring.hpp beside Arrow C++, {}", dialect.name());
                work.push((name, command(*dialect, folders, &STRICT).arg(&file)));
            }
        }
    }
    // What takes longest starts first.
    work.reverse();
    Ok(work)
}

fn precompile(folder: &Path, dialect: Dialect) -> Result<(String, Job)> {
    let header = own_folder(folder, dialect).join("standard.h");
    write(&header, STANDARD)?;
    let ending = if dialect.compiler == "g++" { "h.gch" } else { "h.pch" };
    let job = Job::new(dialect.compiler).arg(format!("-std={}", dialect.standard));
    // A warning may change what is predefined.
    let job = job.args(WARNINGS.iter().filter(|flag| **flag != "-fsyntax-only"));
    let job = job.args(["-x", "c++-header"]).arg(&header).arg("-o").arg(header.with_extension(ending));
    Ok((dialect.name(), job))
}

fn own_folder(folder: &Path, dialect: Dialect) -> PathBuf {
    folder.join(format!("{}-{}", dialect.compiler, dialect.standard))
}

/// Our folders come first; what is in the others is not held to our warnings.
fn command(dialect: Dialect, folders: &Folders, flags: &[&str]) -> Job {
    let job = Job::new(dialect.compiler).env("LC_ALL", "C").arg(format!("-std={}", dialect.standard));
    let (ours, others) = folders.0.split_at_checked(2).unwrap_or((&folders.0, &[]));
    let job = ours.iter().fold(job, |job, folder| job.arg("-I").arg(folder));
    let job = others.iter().fold(job, |job, folder| job.arg("-isystem").arg(folder));
    job.args(WARNINGS).args(flags)
}

/// The orders whose turn it is.
fn write_orders(
    folder: &Path,
    dialect: Dialect,
    dlpack: &Dlpack,
    turn: usize,
    turns: usize,
) -> Result<Vec<PathBuf>> {
    let folder = own_folder(folder, dialect).join(format!("1.{}", dlpack.minor));
    make_folder(&folder)?;
    let headers = [&HEADERS, [dlpack.header].as_slice()].concat();
    let mut files = Vec::new();
    let orders = permutations(&headers);
    let some = orders.iter().step_by(SOME).enumerate().filter(|(n, _)| n % turns == turn);
    for (number, order) in some {
        let file = folder.join(format!("order_{number}.cc"));
        write(&file, &(includes(order) + USE))?;
        files.push(file);
    }
    Ok(files)
}

fn includes(order: &[&str]) -> String {
    order.iter().fold(String::new(), |text, header| text + "#include <" + header + ">\n")
}
