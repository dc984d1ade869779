//! Fronts of files, in a section that is not counted.

/// The front of a file: the length of the header in eight bytes, then the header.
macro_rules! front {
    ($name:ident, $json:literal) => {
        #[unsafe(link_section = ".testdata")]
        pub static $name: [u8; 8 + $json.len()] = front($json);
    };
}

front!(
    GOOD,
    br#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"U8","shape":[5],"data_offsets":[24,29]}}"#
);
front!(BROKEN, br#"{"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,9]}}"#);
front!(
    HUGE,
    br#"{"a":{"dtype":"F32","shape":[1500000000],"data_offsets":[0,6000000000]},"b":{"dtype":"U8","shape":[5],"data_offsets":[6000000000,6000000005]}}"#
);

const fn front<const N: usize, const M: usize>(json: &[u8; N]) -> [u8; M] {
    let mut bytes = [0; M];
    let length = (N as u64).to_le_bytes();
    let mut place = 0;
    while place < M {
        bytes[place] = if place < 8 { length[place] } else { json[place - 8] };
        place += 1;
    }
    bytes
}
