package scrub

import (
	"io"

	"github.com/rpcrdma/toolkit/analyze/window"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/ftrace"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Stats counts what a Scrubber did.
type Stats struct {
	Packets uint64
	// Foreign counts packets that are zero beyond the headers of link and network, or even there: they carry neither TCP, UDP nor InfiniBand,
	// nor an event of a kernel that is known.
	Foreign uint64
	// Fragments counts IP fragments that are zero beyond their headers: all but those of messages over UDP.
	Fragments uint64
	// Messages counts calls and replies whose arguments or results were copied without what they tell. The body of all others is zero: of
	// Secured ones, which RPCSEC_GSS protects or creates a context for; of Unknown ones, whose program is not known, or that reply to a call
	// which was not captured; of Malformed ones. Other counts Sends that are no call or reply at all.
	Messages, Secured, Unknown, Malformed, Other uint64
	// Late counts parts of messages whose packets had left the window before it was known what they are: they are zero.
	Late uint64
}

// Options configures a Scrubber.
type Options struct {
	// Key decides what takes the place of names and addresses. The same key gives the same names.
	Key []byte
	// KeepNames leaves all texts and handles that have a class as they are, KeepAddresses the addresses.
	KeepNames, KeepAddresses bool
	// KeepData leaves the data of files that calls read and write, but for what Kerberos protects.
	KeepData bool
	// KeepExtensions leaves what follows the last dot of a name, if it is short.
	KeepExtensions bool
	// Users replaces numbers of users and groups, too.
	Users bool
	// DropData cuts packets of RoCE and InfiniBand that carry nothing but zeros behind their headers.
	DropData bool
	// Learn, if set, is told what takes the place of what; more than once if there is much.
	Learn func(kind, from, to string)
	// Unwrap, if set, opens what Kerberos protects, so that Learn is told of the names in it. They stay zero in the copy.
	Unwrap rpc.Unwrapper
	// Window is how many bytes of packets and their copies are held; 0 means DefaultWindow.
	Window int
	// Write receives the packets, in their order. Data is valid during the call.
	Write func(*capture.Packet) error
}

// DefaultWindow is how much memory packets take that wait, unless Options.Window says otherwise.
const DefaultWindow = 12 << 20

// keptOfPacket is about what a packet takes beside its bytes: headers, addresses, and what finds its copies.
const keptOfPacket = 600

// Scrubber copies packets without what they tell. It is an observer of a Decoder.
type Scrubber struct {
	opt       Options
	addresses *addresses
	names     *names
	window    *window.Window[held]
	units     *newest
	streams   streams
	fragments map[fragmentOf][]uint64
	stats     Stats
	err       error

	frame  link.Frame
	layers []link.Part
	inner  link.Frame // that InfiniBand carries
	split  roce.Splitter
	seeker roce.Seeker
	packet roce.Packet
	fast   roce.Packet // one of which a roce.FastPacket says all
	traced ftrace.Event
	joined []byte

	procedures map[procedure]*redactables
	header     rpcrdma.Header
	redactor   xdr.Redactor
	reduced    []xdr.Reduced
	copied     []byte
	raw, next  []byte
	parts      []rdma.Part

	fpdu      fpdu // the one whose operation is being told
	untagged  map[sender][]fpdu
	long      map[uint64]*long
	transfers map[transferKey]transfer
	carriedBy int // parts of all long transactions

	view rpc.View // of Options.Unwrap
}

// New makes a Scrubber.
func New(opt Options) *Scrubber {
	key := derive(opt.Key, "addresses")
	s := &Scrubber{
		opt: opt, addresses: newAddresses((*[addressKey]byte)(&key)),
		units: new(newest), streams: streams{parts: make(map[partKey][]segment)},
		fragments:  make(map[fragmentOf][]uint64),
		procedures: make(map[procedure]*redactables), untagged: make(map[sender][]fpdu),
		long: make(map[uint64]*long), transfers: make(map[transferKey]transfer),
	}
	s.addresses.learn = opt.Learn
	s.names = newNames(&s.opt)
	s.redactor.Replace, s.redactor.KeepData = s.replace, opt.KeepData
	s.view.Unwrap = opt.Unwrap
	if opt.Window <= 0 {
		s.opt.Window = DefaultWindow
	}
	s.window = window.New(s.opt.Window, s.release)
	s.window.Keeps(keptOfPacket)
	s.window.Copies()
	return s
}

// replace is xdr.Redactor.Replace.
func (s *Scrubber) replace(c xdr.Class, dst, src []byte) {
	if s.opt.KeepNames && c != xdr.Address || s.opt.KeepAddresses && c == xdr.Address || c == xdr.User && !s.opt.Users {
		copy(dst, src)
	} else {
		s.names.replace(c, dst, src)
	}
}

// Run copies all packets of r. opt says how they are decoded.
func (s *Scrubber) Run(r capture.Reader, opt decode.Options) (*decode.Decoder, error) {
	d := s.decoder(opt)
	var b capture.Batch
	for {
		if err := s.step(r, d, &b); err != nil || s.err != nil {
			if err == nil {
				s.end(d)
			}
			if err == io.EOF {
				err = nil
			}
			return d, err
		}
	}
}

// step takes a batch of packets. After an error, which may be the end of the capture, all have been written.
func (s *Scrubber) step(r capture.Reader, d *decode.Decoder, b *capture.Batch) error {
	err := r.Read(b)
	d.Batch(b)
	if err != nil {
		s.end(d)
	}
	return err
}

// end writes what waits.
func (s *Scrubber) end(d *decode.Decoder) {
	d.Flush()
	s.window.Flush()
}

// decoder makes the Decoder that explains packets.
func (s *Scrubber) decoder(opt decode.Options) *decode.Decoder {
	opt.Concurrent, opt.Trackers = false, 0
	opt.Transactions.OnCompletion = true
	opt.Transactions.Attribute = func(*transaction.Transaction, *transaction.Packet) {} // so that packets of messages are listed
	opt.Transactions.Withdrawn = func(tx *transaction.Transaction) { s.forget(tx.Serial()) }
	o := (*observer)(s)
	opt.Observe(decode.Observer{
		Arrival: o.Arrival, Message: o.Message, Unmatched: o.Unmatched, Operation: o.Operation, OpData: o.OpData, Segment: o.Segment, Closed: o.Closed,
	})
	return decode.New(opt, s.ended)
}

// Err is the error of Options.Write that has ended the copying.
func (s *Scrubber) Err() error { return s.err }

// Stats are the counts so far.
func (s *Scrubber) Stats() Stats { return s.stats }

// release completes the copy of a packet that leaves the window, and writes it.
func (s *Scrubber) release(p *capture.Packet, h *held) {
	if h.flow != 0 {
		s.streams.forget(p.Number, h)
	}
	if h.fragment != nil {
		s.forgetFragment(p.Number, h)
	}
	s.finish(h)
	both := p.Data // the window counts it
	p.Data = h.out
	if s.opt.DropData {
		p.Data = h.withoutData()
	}
	if s.err == nil {
		s.err = s.opt.Write(p)
	}
	p.Data = both
	h.data, h.out, h.flow = nil, nil, 0
}
