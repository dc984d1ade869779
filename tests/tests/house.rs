//! The house rules that a compiler does not keep: the order of modules, where `unsafe` may stand, the size of files.
//!
//! The code is meant to be read in the order in which data flows. `lib.rs`, and every file that has modules of its own,
//! lists them in that order, and a module uses only what stands before it. Once one line goes against the stream
//! the next one does not look wrong any more; so the first one fails here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap()
}

/// All files under a folder of the workspace with this ending, but for what builds and tools leave there.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy();
            if path.is_dir() && !name.starts_with('.') && !["target", "real", "corpus"].contains(&&*name) {
                folders.push(path);
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "{folder} holds no {ending}");
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// The code of a file: no comments, no unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("\nmod tests {").next().unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_top_level_holds_what_it_should() {
    let expected = [
        "CHANGELOG.md",
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "README.md",
        "core",
        "deny.toml",
        "fixtures",
        "fuzz",
        "rustfmt.toml",
        "std-shell",
        "tests",
    ];
    let entries =
        fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let found: BTreeSet<String> = entries.filter(|name| !name.starts_with('.') && name != "target").collect();
    assert_eq!(found, expected.map(str::to_owned).into());
}

#[test]
fn files_are_short_and_say_what_they_do() {
    const LINES_MAX: usize = 600;
    for path in ["core", "std-shell", "tests", "fuzz"].iter().flat_map(|folder| files(folder, ".rs")) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.lines().count() <= LINES_MAX, "{} has more than {LINES_MAX} lines", shown(&path));
        assert!(text.starts_with("//! "), "{} does not begin with what it is", shown(&path));
        assert_ne!(path.file_name().unwrap(), "mod.rs", "{}", shown(&path));
    }
}

#[test]
fn unsafe_code_stands_in_two_files() {
    for path in ["core/src", "std-shell/src", "tests"].iter().flat_map(|folder| files(folder, ".rs")) {
        let code = code(&path);
        let mut words = code.split(|char: char| !char.is_alphanumeric() && char != '_');
        let found = words.any(|word| word == concat!("uns", "afe"));
        let allowed = ["std-shell/src/kernels.rs", "std-shell/src/mapped.rs"];
        assert_eq!(found, allowed.contains(&&*shown(&path)), "{}", shown(&path));
    }
    let core = fs::read_to_string(root().join("core/src/lib.rs")).unwrap();
    assert!(core.contains(concat!("#![forbid(uns", "afe_code)]")) && core.contains("#![no_std]"));
}

/// A module: its path from the crate, such as `tensor::index`.
type Module = Vec<String>;

/// The modules of a crate in the order in which they stand, and what `lib.rs` gives a shorter name.
struct Crate {
    order: BTreeMap<Module, usize>,
    exports: BTreeMap<String, Module>,
    sources: Vec<(Module, PathBuf)>,
}

impl Crate {
    fn read(src: &str) -> Self {
        let src = root().join(src);
        let mut read = Self { order: BTreeMap::new(), exports: BTreeMap::new(), sources: Vec::new() };
        read.descend(&src, &src.join("lib.rs"), Module::new());
        let lib = code(&src.join("lib.rs"));
        for statement in lib.split("pub use ").skip(1) {
            for path in expand(statement.split(';').next().unwrap()) {
                let (name, module) = path.split_last().unwrap();
                read.exports.insert(name.clone(), module.to_vec());
            }
        }
        read
    }

    /// Takes down a module's children, each before its own children.
    fn descend(&mut self, src: &Path, path: &Path, module: Module) {
        let code = code(path);
        for line in code.lines().map(str::trim) {
            let line = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
            let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) else {
                continue;
            };
            let child: Module = module.iter().cloned().chain([name.to_owned()]).collect();
            self.order.insert(child.clone(), self.order.len());
            let path = src.join(child.join("/")).with_extension("rs");
            self.descend(src, &path, child);
        }
        if !module.is_empty() {
            self.sources.push((module, path.to_path_buf()));
        }
    }

    /// The module that a path of names leads to: the longest part of it that is one.
    fn target(&self, path: &[String]) -> Option<Module> {
        let exported = path.first().and_then(|name| self.exports.get(name));
        let path = exported.map_or(path, Vec::as_slice);
        (1..=path.len()).rev().map(|len| path[..len].to_vec()).find(|module| self.order.contains_key(module))
    }

    /// Every use of a module that stands behind its user; and how many uses there are.
    fn against_the_stream(&self) -> (Vec<String>, usize) {
        let (mut found, mut uses) = (Vec::new(), 0);
        for (user, path) in &self.sources {
            let code = code(path);
            let from_root = code.match_indices("crate::").map(|(at, word)| (&user[..0], at + word.len()));
            let parent = &user[..user.len() - 1];
            let from_parent = code.match_indices("super::").map(|(at, word)| (parent, at + word.len()));
            for (base, place) in from_root.chain(from_parent) {
                let paths = expand(&code[place..]).into_iter().map(|path| [base, &path].concat());
                for used in paths.filter_map(|path| self.target(&path)) {
                    uses += 1;
                    // A module and its own parent or child are one thing; the order is that of siblings.
                    let shared = user.iter().zip(&used).take_while(|(one, other)| one == other).count();
                    if shared == user.len() || shared == used.len() {
                        continue;
                    }
                    let [own, other] = [user, &used].map(|module| self.order[&module[..=shared]]);
                    if other > own {
                        found.push(format!("{} uses {}", user.join("::"), used.join("::")));
                    }
                }
            }
        }
        (found, uses)
    }
}

/// The paths that a use tree at the start of `text` stands for: `a::{b, c::D}` gives `a b` and `a c D`.
fn expand(text: &str) -> Vec<Vec<String>> {
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        let (mut paths, mut depth, mut begin) = (Vec::new(), 0, 0);
        for (at, char) in group.char_indices() {
            match char {
                '{' => depth += 1,
                ',' if depth == 0 => {
                    paths.extend(expand(&group[begin..at]));
                    begin = at + 1;
                }
                '}' if depth == 0 => {
                    paths.extend(expand(&group[begin..at]));
                    break;
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return paths;
    }
    let end = text.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        return Vec::new();
    }
    let behind = rest.strip_prefix("::").map_or(vec![Vec::new()], expand);
    let behind = if behind.is_empty() { vec![Vec::new()] } else { behind };
    behind.into_iter().map(|path| [vec![name.to_owned()], path].concat()).collect()
}

#[test]
fn every_file_is_compiled() {
    for (src, root_files) in [("core/src", &["lib.rs"][..]), ("std-shell/src", &["lib.rs", "main.rs"])] {
        let mut reached: BTreeSet<PathBuf> = BTreeSet::new();
        for file in root_files {
            let path = root().join(src).join(file);
            let mut read = Crate { order: BTreeMap::new(), exports: BTreeMap::new(), sources: Vec::new() };
            read.descend(&root().join(src), &path, Module::new());
            reached.extend(read.sources.into_iter().map(|(_, path)| path).chain([path]));
        }
        let lost: Vec<_> = files(src, ".rs").into_iter().filter(|path| !reached.contains(path)).collect();
        assert!(lost.is_empty(), "no `mod` line leads to {lost:?}");
    }
}

#[test]
fn modules_use_what_stands_before_them() {
    let mut against = Vec::new();
    for (src, uses_min) in [("core/src", 60), ("std-shell/src", 20)] {
        let mut read = Crate::read(src);
        let (found, uses) = read.against_the_stream();
        assert!(uses > uses_min, "{src}: only {uses} uses were seen");
        // The other way round almost every use is against the stream.
        let modules = read.order.len();
        read.order.values_mut().for_each(|place| *place = modules - *place);
        assert!(read.against_the_stream().0.len() > uses_min / 2, "{src}: nobody would notice");
        against.extend(found.into_iter().map(|line| format!("{src}: {line}")));
    }
    against.sort();
    against.dedup();
    assert!(against.is_empty(), "against the stream:\n{}", against.join("\n"));
}

#[test]
fn use_trees_are_read() {
    let paths = |text| expand(text).iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(paths("a::{b, c::{D, e::F}, self};"), ["a::b", "a::c::D", "a::c::e::F", "a::self"]);
    assert_eq!(paths("json::Scan::new(text)"), ["json::Scan::new"]);
    let made_up = Crate {
        order: [["a"], ["b"]]
            .iter()
            .enumerate()
            .map(|(place, [name])| (vec![(*name).to_owned()], place))
            .collect(),
        exports: BTreeMap::new(),
        sources: vec![(vec!["a".to_owned()], root().join("core/src/lib.rs"))],
    };
    assert_eq!(made_up.target(&["b".to_owned(), "Type".to_owned()]), Some(vec!["b".to_owned()]));
    assert_eq!(made_up.target(&["Type".to_owned()]), None);
}
