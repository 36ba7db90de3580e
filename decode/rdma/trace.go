package rdma

// HeaderKind says what a Header was taken from.
type HeaderKind uint8

// Kinds of headers.
const (
	HeaderNone HeaderKind = iota
	HeaderBTH             // RoCE, InfiniBand
	HeaderDDP             // iWARP
	HeaderTCP             // a TCP segment: an acknowledgment, or RPC over TCP
	HeaderUDP
)

// Header is the fabric header of a packet, for packet listings. Operation tracking does not use it.
type Header struct {
	Kind     HeaderKind
	Opcode   uint8  // of the BTH, or of RDMAP
	Last     bool   // DDP: the last segment of its message
	HasAETH  bool   // BTH: Syndrome and MSN come from an AETH
	Syndrome uint8  // of the AETH
	PSN      uint32 // BTH
	MSN      uint32 // AETH; DDP: of an untagged message
}

// PartKind says what a packet is to a Send.
type PartKind uint8

// Kinds of parts.
const (
	PartData  PartKind = iota // carries bytes of it
	PartAgain                 // the same, seen again before the Send was complete
	PartAck                   // acknowledges a part of it
)

// Part is a packet of a Send or of a Fragment.
type Part struct {
	Ref    Ref
	Header Header
	Kind   PartKind
	Bytes  uint32 // of the Send or Fragment in it
}

// MaxParts bounds the packets that are named of one Send or Fragment.
const MaxParts = 4096

// AddPart appends a packet, unless there are too many or it is the one that
// came last.
func AddPart(list []Part, p Part) []Part {
	if n := len(list); n > 0 && list[n-1].Ref.Number == p.Ref.Number && list[n-1].Kind == p.Kind {
		list[n-1].Bytes += p.Bytes
		return list
	}
	if len(list) >= MaxParts {
		return list
	}
	return append(list, p)
}

// Tracer lists the packets of operations one by one: see Hooks.
type Tracer interface {
	// Acked reports an acknowledgement of a Send or an operation, or of a part
	// of it, given the tag that belongs to the Handler. from is the side that
	// sent what is acknowledged; the packet is one of the other side.
	Acked(c *Connection, from Side, tag Tag, ref Ref)
	// Early reports a packet of RoCE or InfiniBand that cannot be placed, since
	// the beginning of its message is not known. It will be, when the packet
	// with that PSN comes again.
	Early(c *Connection, from Side, psn uint32, ref Ref)
}
