package link

import "encoding/binary"

// decodeCiscoMeta reads Cisco's metadata header: version 8, number of options
// 8, for each an option 16 and its value 16, then an EtherType. The one option
// in use has the security group tag.
func decodeCiscoMeta(data []byte, n int, f *Frame) {
	if len(data) < 2 {
		f.Problem = ProblemCutCMD
		return
	}
	head := 2 + 4*int(data[1])
	if len(data) < head+2 {
		f.Problem = ProblemCutCMD
		return
	}
	t := Tunnel{Type: CiscoMeta}
	if head >= 6 {
		t.HasID, t.ID = true, uint32(binary.BigEndian.Uint16(data[4:]))
	}
	if f.enter(t) {
		f.numbers(data[:head+2])
		decodeEtherType(binary.BigEndian.Uint16(data[head:]), data[head+2:], n-head-2, f)
	}
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
func decodeMACsec(data []byte, n int, f *Frame) {
	if len(data) < 6 {
		f.Problem = ProblemCutMACsec
		return
	}
	tci := data[0]
	head := 6
	if tci&macsecSCI != 0 {
		head += 8
	}
	switch {
	case tci&macsecVersion != 0:
		f.Problem = ProblemMACsecVersion
		return
	case n < head+2+macsecICV:
		f.Problem = ProblemShortMACsec
		return
	}
	if !f.enter(Tunnel{Type: MACsec}) {
		return
	}
	f.numbers(data[:6])
	if tci&(macsecEncrypted|macsecChanged) != 0 {
		f.Unknown = Unknown{MACsecLayer, uint32(tci)}
		return
	}
	if len(data) < head+2 {
		f.Problem = ProblemCutMACsec
		return
	}
	// A short length of 1 to 47 gives the length of the data; the rest is padding.
	n -= macsecICV
	if short := int(data[1] & 0x3f); short != 0 && short < n-head {
		n = head + short
	}
	end := min(n, len(data))
	if end < head+2 {
		f.Problem = ProblemCutMACsec
		return
	}
	if tci&macsecSCI != 0 { // the address of the sender, and its port
		f.part(PartMAC, data[6:12], nil)
		f.numbers(data[12:14])
	}
	f.numbers(data[head : head+2])
	decodeEtherType(binary.BigEndian.Uint16(data[head:]), data[head+2:end], n-head-2, f)
}

// decodePBB reads the tag of a backbone bridge (IEEE 802.1ah): priority and
// flags 8, I-SID 24. The customer's Ethernet header follows.
func decodePBB(data []byte, n int, f *Frame) {
	if len(data) < 4 {
		f.Problem = ProblemCutPBB
		return
	}
	if f.enter(Tunnel{Type: PBB, HasID: true, ID: binary.BigEndian.Uint32(data) & 0xffffff}) {
		f.numbers(data[:4])
		decodeEthernet(data[4:], n-4, f)
	}
}
