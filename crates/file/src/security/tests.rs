//! What the tests of several files use.

/// Descriptors as Windows and the service print them.
pub(super) const EXAMPLES: [&str; 20] = [
    // A permission in the tests of the service's clients, and how the service shows it after Create Permission.
    "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)",
    "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)S:NO_ACCESS_CONTROL",
    // A directory and a file in the root of a share, and permissions that administrators give.
    "O:SYG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)(A;OICI;0x1301bf;;;AU)(A;;FA;;;SY)(A;OICIIO;GA;;;CO)",
    "O:SYG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)(A;;0x1301bf;;;AU)(A;;FA;;;SY)",
    "O:SYG:SYD:P(A;;FA;;;AU)S:NO_ACCESS_CONTROL",
    "O:BAG:SYD:PAI(A;OICIIO;0x1301bf;;;CO)(A;;0x1301bf;;;AU)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)",
    "O:AOG:S-1-5-21-397955417-626881126-188441444-512D:(A;;CCDCLCSWRPWPRCWDWOGA;;;S-1-0-0)S:NO_ACCESS_CONTROL",
    "O:SYG:SYD:(A;OICINP;0x1200a9;;;AU)",
    // Drives and files of Windows.
    "O:SYG:SYD:AI(A;OICIIO;SDGXGWGR;;;AU)(A;;0x1301bf;;;AU)(A;;FA;;;SY)(A;OICIIO;GA;;;SY)(A;OICIIO;GA;;;BA)(A;;FA;;;BA)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)",
    "O:BAG:S-1-5-21-1-2-3-513D:AI(D;;FW;;;AN)(A;ID;FA;;;BA)(A;ID;FA;;;SY)(A;ID;0x1200a9;;;BU)",
    "O:S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464G:SYD:P(A;;FA;;;BA)(A;;0x1200a9;;;AC)S:(AU;SAFA;DCLCRPCRSDWDWO;;;WD)",
    "O:BAG:BAD:(A;;FA;;;OW)S:AI(AU;OICISA;SD;;;WD)(ML;OICI;NW;;;LW)",
    "O:BAG:BAD:(A;;FA;;;BA)S:(ML;;NWNRNX;;;HI)",
    // Edges: no ACE, no list, every flag, no rights, object ACEs, each part alone.
    "O:BAG:SYD:",
    "O:BAG:SYD:PARAINO_ACCESS_CONTROLS:PARAI",
    "O:BAG:SYD:(A;OICINPIOIDSAFA;;;;WD)(D;;0x100000;;;S-1-0x100000000-1-2-3-4-5-6-7-8-9-10-11-12-13-14-15)",
    "D:(OA;CIIO;RP;037088f8-0ae1-11d2-b422-00a0c968f939;bf967aba-0de6-11d0-a285-00aa003049e2;RU)(OD;;CR;;bf967aba-0de6-11d0-a285-00aa003049e2;WD)(OA;;CR;;;PS)S:(OU;CISA;WP;f30e3bbe-9ff0-11d1-b603-0000f80367c1;;WD)",
    "O:SY",
    "G:SY",
    "S:",
];

/// Pseudorandom numbers, the same in every run.
pub(super) fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}
