package link

import "encoding/binary"

// decodeCiscoMeta reads Cisco's metadata header: version 8, number of options
// 8, for each an option 16 and its value 16, then an EtherType. The one option
// in use has the security group tag.
func decodeCiscoMeta(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 2 {
		return f.stop(ProblemCutCMD)
	}
	head := 2 + 4*int(data[1])
	if len(data) < head+2 {
		return f.stop(ProblemCutCMD)
	}
	t := Tunnel{Type: CiscoMeta}
	if head >= 6 {
		t.HasID, t.ID = true, uint32(binary.BigEndian.Uint16(data[4:]))
	}
	if !f.enter(t) {
		return nil, nil, 0
	}
	f.numbers(data[:head+2])
	return f.ether(binary.BigEndian.Uint16(data[head:]), data[head+2:], n-head-2)
}

// Bits of the TCI of a MACsec tag (IEEE 802.1AE, section 9.5).
const (
	macsecVersion   = 0x80
	macsecSCI       = 0x20
	macsecEncrypted = 0x08
	macsecChanged   = 0x04
)

// macsecICV is the size of the integrity check value of all cipher suites
// (IEEE 802.1AE, section 14).
const macsecICV = 16

// decodeMACsec reads a MACsec security tag: TCI and association number 8, short length 8, packet number 32,
// and the channel's identifier 64 if TCI says so. Data that is neither encrypted nor changed starts with its
// EtherType; the ICV is after it.
func decodeMACsec(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 6 {
		return f.stop(ProblemCutMACsec)
	}
	tci := data[0]
	head := 6
	if tci&macsecSCI != 0 {
		head += 8
	}
	switch {
	case tci&macsecVersion != 0:
		return f.stop(ProblemMACsecVersion)
	case n < head+2+macsecICV:
		return f.stop(ProblemShortMACsec)
	}
	if !f.enter(Tunnel{Type: MACsec}) {
		return nil, nil, 0
	}
	f.numbers(data[:6])
	if tci&(macsecEncrypted|macsecChanged) != 0 {
		f.Unknown = Unknown{MACsecLayer, uint32(tci)}
		return nil, nil, 0
	}
	if len(data) < head+2 {
		return f.stop(ProblemCutMACsec)
	}
	// A short length of 1 to 47 gives the length of the data; the rest is padding.
	n -= macsecICV
	if short := int(data[1] & 0x3f); short != 0 && short < n-head {
		n = head + short
	}
	end := min(n, len(data))
	if end < head+2 {
		return f.stop(ProblemCutMACsec)
	}
	if tci&macsecSCI != 0 { // the address of the sender, and its port
		f.part(PartMAC, data[6:12], nil)
		f.numbers(data[12:14])
	}
	f.numbers(data[head : head+2])
	return f.ether(binary.BigEndian.Uint16(data[head:]), data[head+2:end], n-head-2)
}

// decodePBB reads the tag of a backbone bridge (IEEE 802.1ah): priority and
// flags 8, I-SID 24. The customer's Ethernet header follows.
func decodePBB(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 4 {
		return f.stop(ProblemCutPBB)
	}
	return f.within(Tunnel{Type: PBB, HasID: true, ID: binary.BigEndian.Uint32(data) & 0xffffff}, 4, decodeEthernet, data, n)
}
