// Package capture reads and writes packet captures: classic pcap, pcapng,
// compressed files, standard input and several files merged by time.
//
// Readers hand out packets in batches so that a reader, a stateless dissector
// and the stateful trackers can run side by side without copying a packet.
package capture

import "fmt"

// LinkType is a LINKTYPE_ value of the pcap registry
// (https://www.tcpdump.org/linktypes.html).
type LinkType uint16

// Link types that package decode/link understands.
const (
	LinkNull       LinkType = 0
	LinkEthernet   LinkType = 1
	LinkRawBSD     LinkType = 12 // DLT_RAW as written by some systems
	LinkRawOpenBSD LinkType = 14
	LinkPPP        LinkType = 9
	LinkPPPHDLC    LinkType = 50
	LinkPPPEther   LinkType = 51 // starts with a PPPoE header
	LinkRaw        LinkType = 101
	LinkCiscoHDLC  LinkType = 104
	LinkLoop       LinkType = 108
	LinkSLL        LinkType = 113
	LinkPPI        LinkType = 192
	LinkERF        LinkType = 197
	LinkPPPWithDir LinkType = 204
	LinkMPLS       LinkType = 219
	LinkIPv4       LinkType = 228
	LinkIPv6       LinkType = 229
	LinkNFLOG      LinkType = 239
	LinkIPoIB      LinkType = 242
	LinkInfiniBand LinkType = 247
	LinkSLL2       LinkType = 276
	// LinkTrace is for kernel trace events, records or lines, as package ftrace reads them. It is one of the numbers that the registry leaves to
	// users (LINKTYPE_USER15). Interfaces of pcapng files have TraceSchema as their description.
	LinkTrace LinkType = 162
)

// TraceSchema is the form of packets of LinkTrace.
const TraceSchema = "rpcrdma.kernel-events/3"

// Packet is one captured frame. Data aliases memory of the Batch that holds
// the packet and is valid until that batch is refilled.
type Packet struct {
	Time   int64    // nanoseconds since 1970-01-01 00:00:00 UTC
	Number uint64   // 1-based position in the whole input, after merging; custom and journal blocks of pcapng count, as in Wireshark
	Offset int64    // byte offset of the record in its (decompressed) file
	Length uint32   // length on the wire in bytes; len(Data) is what was captured
	Tap    uint16   // where it was captured: a lane of merged files and an interface within it
	Link   LinkType // how Data starts
	// Segment is the payload in bytes of each of the packets that segmentation offload cuts this one into,
	// except for the last, which may be shorter; 0 if there are none, or if the source does not say. Live
	// captures do.
	Segment uint16
	Data    []byte
}

// Batch is a run of packets with the memory that they alias. The zero value
// is ready for use; a reader refills it and keeps its memory.
type Batch struct {
	Packets []Packet
	buf     []byte
}

// Reader is a source of packets.
//
// Read refills b. It returns a nil error and at least one packet, or no packet
// and an error: io.EOF at the end of the input, or what made it impossible to
// go on. Damage that a reader can step over does not end the reading; it is
// kept in Problems.
type Reader interface {
	Read(b *Batch) error
	// Problems lists the damage found so far: at most MaxProblems entries, and the total number.
	Problems() (list []*Problem, total int)
	Close() error
}

// MaxProblems is how many problems a reader keeps in detail.
const MaxProblems = 64

// Problem is a damaged or truncated place in an input.
type Problem struct {
	File   string // as given by the user; "-" for standard input
	Packet uint64 // number of the packet at or after the damage, counted in this file; 0 if before the first
	Offset int64  // byte offset in the (decompressed) file
	Text   string // what is wrong, in words
	Err    error  // cause, or nil
}

func (p *Problem) Error() string {
	s := fmt.Sprintf("%s: packet %d, offset %d: %s", p.File, p.Packet, p.Offset, p.Text)
	if p.Err != nil {
		s += ": " + p.Err.Error()
	}
	return s
}

func (p *Problem) Unwrap() error { return p.Err }
