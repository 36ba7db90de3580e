package link

// Part is a piece of the headers that Decode has passed, for those who rewrite packets. What is in no part tells something, or is not known:
// options, tags with values of any kind, what a header carries.
type Part struct {
	Kind PartKind
	// Tunnels is how many encapsulations had been entered.
	Tunnels uint8
	// Head is the piece, Body what was captured of that which it carries, without padding: of UDP and GRE, whose checksums cover it.
	Head, Body []byte
}

// PartKind is a kind of Part.
type PartKind uint8

// Kinds of parts.
const (
	PartNumbers PartKind = iota // lengths, types, identifiers, times
	PartMAC                     // an Ethernet address
	PartGID                     // 16 bytes: a GID or an IPv6 address
	PartIPv4                    // a header with its options
	PartIPv6                    // a header, or a GRH
	PartUDP
	PartTCP // a header with what was captured of its options
	PartGRE
)

// DecodeParts is Decode. It appends the parts of the headers to parts, which f refers to from then on: a decoding of what the packet
// carries, as by DecodeIPoIB, goes on there.
func DecodeParts(lt linkType, data []byte, wire uint32, f *Frame, parts *[]Part) {
	tunnels := f.Tunnels[:0]
	*f = Frame{}
	f.Tunnels, f.parts = tunnels, parts
	f.decode(f.link(lt, data, max(int(min(wire, maxUndeclared)), len(data))))
}

// part notes a part, if somebody wants to know.
func (f *Frame) part(k PartKind, head, body []byte) {
	if f.parts != nil {
		f.note(k, head, body)
	}
}

func (f *Frame) note(k PartKind, head, body []byte) {
	*f.parts = append(*f.parts, Part{k, uint8(len(f.Tunnels)), head, body})
}

// numbers notes a part that is numbers.
func (f *Frame) numbers(b []byte) { f.part(PartNumbers, b, nil) }

// ethernet notes the header of an Ethernet frame.
func (f *Frame) ethernet(data []byte) {
	if f.parts != nil {
		f.part(PartMAC, data[:6], nil)
		f.part(PartMAC, data[6:12], nil)
		f.numbers(data[12:14])
	}
}

// cooked notes an address in eight bytes of which size are used. One of another kind than Ethernet's is left out.
func (f *Frame) cooked(data []byte, size int) {
	if size == 6 {
		f.part(PartMAC, data[:6], nil)
	}
}

// geneveOptions notes the frames of GENEVE's options (RFC 8926, section 3.5): class 16, type 8, reserved 3, length 5 in units of four bytes.
func (f *Frame) geneveOptions(b []byte) {
	for f.parts != nil && len(b) >= 4 {
		f.numbers(b[:4])
		b = b[min(4+4*int(b[3]&0x1f), len(b)):]
	}
}

// tags notes types and lengths of TZSP's tags, of which decodeTZSP has found that they are whole.
func (f *Frame) tags(b []byte) {
	for f.parts != nil && len(b) > 0 {
		if b[0] <= 1 || len(b) == 1 {
			f.numbers(b[:1])
			b = b[1:]
			continue
		}
		f.numbers(b[:2])
		b = b[min(2+int(b[1]), len(b)):]
	}
}

// extensions notes a header of GTP-U, and of its extensions lengths and types.
func (f *Frame) extensions(b []byte) {
	if f.parts == nil {
		return
	}
	at := min(len(b), gtpSize)
	if b[0]&gtpOptional != 0 {
		at += 4
	}
	f.numbers(b[:at])
	for at < len(b) {
		end := at + 4*int(b[at])
		f.numbers(b[at : at+1])
		f.numbers(b[end-1 : end])
		at = end
	}
}
