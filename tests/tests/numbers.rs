//! Numbers of every dtype: what codes decode to, what values encode to, and what is refused.
//!
//! A wrong bit here is a wrong weight in every file, and nobody sees it. So another library is asked about every code,
//! every middle between two codes and ten million patterns ([`library`]); a twin that looks for the nearest value is
//! asked about both widths of float, slices and blocks ([`random`]); integers, lengths and errors stand in tables
//! ([`tables`]); and the reference document's examples are there byte for byte ([`worked_examples`]).

mod library;
mod random;
mod tables;
mod worked_examples;
