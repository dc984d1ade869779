//! A training loop becomes a run that can be killed at any instant: the loop, and what each promise of it costs.
//!
//! # The loop
//!
//! [`TokenStream`](crate::tokens::TokenStream) gives batches, [`History`](crate::run::History) takes losses,
//! [`Guard`](crate::run::Guard) says when to save, [`save`](crate::checkpoint::save()) and
//! [`load`](crate::checkpoint::load()) do it. The loop is the function `train`; `cargo run --example trainer` runs it.
//!
//! ```
#![doc = include_str!("../examples/trainer.rs")]
//! ```
//!
//! # What must be so for a resumed run to end on the same bytes
//!
//! * Everything that the next step depends on is in the checkpoint: parameters, the optimizer's arrays and its step count, the
//!   cursor **with** the generator's state. A seed is not a state.
//! * A step computes the same bits each time: a fixed order of sums, no clock, no hash order, no count of threads. `exp`, `ln` and
//!   `powi` of the standard library are those of the machine's own C library, and differ from one to the next in their last
//!   bits: a run that moves to another machine goes on there, but not bit for bit. The example above accepts that; the
//!   program's `train bigram` takes them from the crate `libm`, which is the same code on every machine.
//! * The run that is resumed is the same run: data, batch, seed and whatever else decides on the bytes stand in the config of the
//!   checkpoint, and a resume with another one is refused before anything is written.
//! * The history is durable before the step is declared done, and is told of every resume.
//! * Signals are installed first thing, so that none falls into a gap. Whether to stop is asked once more after a save, which
//!   can take long.
//!
//! # What each promise costs
//!
//! | promise | call | bytes | syncs | memory |
//! |---|---|---|---|---|
//! | a killed process loses no line | `History::append` | the line, one write | 0 | one line |
//! | nor does a power failure | `History::sync` | 0 | 1 | 0 |
//! | a line that was cut off is kept and told | `History::open` | that line, copied once | 3 | 64 KiB |
//! | a step is whole or not there | `checkpoint::save` | all of the state, written once, hashed once (SHA-256) | 8, and 1 for each of `config.json` and further files | 1 MiB a thread or less: the state is borrowed |
//! | old steps go (`Retention`) | within `save` | 0 | 1 if any goes | 0 |
//! | what is loaded is what was saved | `checkpoint::load` | all of the state, read once, hashed once | 0 | none: it is mapped, pages come from the page cache |
//! | five regions for other programs | `write_snapshot` | 8 + 12 a parameter, no hash | 2 | 64 KiB |
//! | a checkpoint as a snapshot, or back | `export_snapshot`, `import_snapshot` | as a snapshot, as a save | 2, 8 | mapped both ways |
//! | the same windows again | `TokenStream::cursor`, `restore` | 0: three numbers, at any place the same | 0 | 0 |
//! | to stop when asked | `Guard::after_step` | 0: a few loads and a look at the clock | 0 | 0 |
//!
//! The eight syncs of a save: `model.safetensors`, `optimizer.safetensors`, `trainer_state.json`, `MANIFEST.json`, the step's
//! directory, the root for the step's name, `LATEST.tmp`, the root for `LATEST`. A test counts them. The first save of a run
//! syncs once more for each directory that it makes, and for the one that it finds.
//!
//! How long a save takes is the larger of two times, as hashing and writing go side by side from 4 MiB on (a processor with SHA
//! instructions hashes faster than most disks write), plus the syncs, each as long as the disk takes for it. A step of which one
//! in K is saved is slower by (time of a save) / (K x time of a step): with a save of 2 s, steps of 200 ms and the default
//! K = 100, 10 %. [`BackgroundSaver`](crate::checkpoint::BackgroundSaver) takes that time off the loop for one more copy of the
//! state in memory.
//!
//! # What is not promised
//!
//! A step since the last save is done again after a crash: at most K of them, or as many as fit into the clock's interval.
//! Directories on network file systems keep these promises only as far as their `fsync`, `rename` and `flock` do.
