package roce

import "hash/crc32"

// The general way to the ICRC (see Checker) gathers the masked headers in memory, for the checksum routine of Go's library.
// For small packets that takes about as long as the checksum: the routine reads 16 bytes at once what was written in other
// pieces, and waits until that has reached the cache. Where the processor allows it, the headers are masked in
// registers instead.

const (
	// foldHead is how many bytes may be masked: the ones in place of a local route header, IP, UDP and BTH.
	foldHead = 64
	// foldMost is the longest packet for which fold128 is faster: Go's library takes 64 bytes in a step.
	foldMost = 1024
	// foldLeast is the shortest one.
	foldLeast = 16
	// foldResidue is the register of a CRC after data and its CRC.
	foldResidue = 0xdebb20e3
)

// onesTable has the bits that count as ones, between as many zeros as may be read instead.
type onesTable [3 * foldHead]byte

// ones4 and ones6 are for the last four bytes of a link header, which stand for the local route header (see Checker), and
// an IP packet without options. ones0 masks nothing.
var ones0, ones4, ones6 = onesTable{}, onesTable{
	foldHead: 0xff, 0xff, 0xff, 0xff,
	foldIP + 1: 0xff, foldIP + 8: 0xff, foldIP + 10: 0xff, 0xff, // TOS, TTL, checksum
	foldIP + ipv4Size + 6: 0xff, 0xff, foldIP + ipv4Size + udpSize + bthECN: 0xff,
}, onesTable{
	foldHead: 0xff, 0xff, 0xff, 0xff,
	foldIP: 0x0f, 0xff, 0xff, 0xff, foldIP + 7: 0xff, // traffic class, flow label, hop limit
	foldIP + ipv6Size + 6: 0xff, 0xff, foldIP + ipv6Size + udpSize + bthECN: 0xff,
}

const foldIP = foldHead + icrcOnes

// Linear returns the CRC-32 of Ethernet of b without its initial and final inversion. Without them the CRC is linear: for a and b of the same
// length, Linear(a XOR b) equals Linear(a) XOR Linear(b).
func Linear(b []byte) uint32 {
	switch {
	case len(b) < foldLeast:
	case foldsWide:
		return fold512(&b[0], len(b), &ones0)
	case folds && len(b) <= foldMost:
		return fold128(&b[0], len(b), &ones0)
	}
	return ^crc32.Update(^uint32(0), crc32.IEEETable, b)
}

// Intact verifies the ICRC of p: four bytes of any value, and an IP packet whose header has net bytes, 20 or 40. It does not
// check that this is a RoCEv2 packet, which has 28 bytes at least behind that header: p may not be shorter.
func (d *FastDecoder) Intact(p []byte, net int) bool {
	ones := &ones4
	if net != ipv4Size {
		ones = &ones6
	}
	_ = p[icrcOnes+ipv4Size+udpSize+BTHSize+ICRCSize-1]
	switch {
	case foldsWide:
		return fold512(&p[0], len(p), ones) == foldResidue
	case folds && len(p) <= icrcOnes+foldMost:
		return fold128(&p[0], len(p), ones) == foldResidue
	}
	return d.intact(p[icrcOnes:], net)
}
