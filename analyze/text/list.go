package text

import (
	"fmt"
	"hash/crc32"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/digits"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Legend explains the columns and abbreviations of the listing.
const Legend = `Columns of the listing, one line for each transaction:

  time            of the first packet of the call (-t)
  client > server requester and responder of this transaction
  xid             in hexadecimal
  program         with its version: nfs3, nfs4.1, nfsacl3, mount3, nfs_cb
  operation       the procedure; of an NFSv4 COMPOUND the operations that
                  matter, joined by "+": no SEQUENCE, PUTFH, GETFH and the like,
                  and GETATTR and ACCESS only if there is nothing else than
                  LOOKUP
  file            path as far as it is known from the capture, or fh: and the
                  CRC-32 of the file handle; "a -> b" for renames and links
  @offset+count   range of the file; "=n" if n bytes were moved instead
  chunks          what the call offered (see below)
  latency         first packet of the call to last packet of the reply
  status          "ok", or the name of the error without NFS3ERR_, NFS4ERR_;
                  "ok?" if the RPC succeeded but its result cannot be read

Where two addresses do not fit, #1 is the connection, and a line explains it
once.

Sizes are exact; K, M and G stand for multiples of 1024, 1024² and 1024³.

Chunks:

  -          none: call and reply are inline
  Z4K        Position-Zero Read chunk of 4096 bytes: it holds the call
  R4K        Read chunk: data of the call, pulled by the responder
  W128Kx8    Write chunk of 8 segments of 128 KiB: room for data of the reply
  W70004/2   Write chunk of 70004 bytes in 2 segments of different lengths
  P4240      Reply chunk: room for a whole reply
  P4240:100  of the room that was offered, the reply used 100 bytes
  W4K?       the capture cut the lists: there may be more, and larger ones
  tcp, udp   RPC without RDMA

After the status:

  retrans=3   packets of this transaction that were seen again
  incomplete  part of it is missing from the capture
  notes=1     remarks, which -v shows
`

// Lister writes transactions as lines. The zero value lists for 120 columns
// without colors.
type Lister struct {
	Clock Clock
	// Width is the number of columns that a line has at most; 0 means 120. If the addresses leave too little room for the file,
	// the lines name the connection by its number instead (see narrow). A negative width fills lines to as many columns (-1: 120)
	// and lets whole names push beyond. A width of 0 keeps the addresses whatever they take, so that output into files has the
	// same columns everywhere.
	Width int
	Color bool
	// Name, if set, gives the name of a host; empty to show the address.
	Name func(netip.Addr) string

	hosts  hosts
	path   []byte
	chunks []byte
	tail   line
	kinds  compound.Kinds
	lists  [compound.Most]list
	other  line // of a call without a kind

	explained map[int]struct{} // connections of which a line has told the addresses
	piece     []byte           // of a narrow line
}

// list is what was written about the program and the operations of calls of a kind, with the spaces behind it.
type list struct {
	stamp uint64 // of the compound.Kind
	line
}

const (
	defaultWidth = 120
	addressWidth = 21 // 192.0.2.2 > 192.0.2.1
	programWidth = 7
	whatWidth    = 22 // program and operation
	latencyWidth = 7
	statusWidth  = 5 // NOENT
	leastFile    = 16

	// besideHosts is what a line takes besides the addresses: time, XID, what, file, chunks, latency and status with the spaces
	// behind them.
	besideHosts = len("05:33:11.644754 ") + 1 + len("01234567 ") + whatWidth + 1 + leastFile + 1 + len("W128K ") + latencyWidth + 1 + statusWidth
)

// line is a line that is being written, with its width in columns.
type line struct {
	b   []byte
	col int
}

// str appends text whose bytes take one column each.
func (l *line) str(s string) { l.b, l.col = append(l.b, s...), l.col+len(s) }

func (l *line) painted(on bool, color, s string) {
	l.b, l.col = Paint(l.b, on, color, s), l.col+len(s)
}

// pad fills up to a column.
func (l *line) pad(to int) {
	for n := to - l.col; n > 0; n -= len(blanks) {
		l.b = append(l.b, blanks[:min(n, len(blanks))]...)
	}
	l.col = max(l.col, to)
}

// since adds the columns of what was appended to b since start.
func (l *line) since(start int) { l.col += len(l.b) - start }

// Append appends the line of a transaction, without a newline; in front of it the line that explains the number of a
// connection, if lines are too narrow for addresses.
//
// Most transactions pass through here by the million, so what is the same for many of them is kept as it is written, and
// col, the number of columns so far, is counted beside the bytes.
func (s *Lister) Append(b []byte, v *rpc.View) []byte {
	tx := v.Tx
	hosts := s.hosts.pair(s.Name, tx.Client().Addr, tx.Server().Addr, tx.Connection.ID)
	if s.Width > 0 && s.Width < s.hosts.width+besideHosts {
		return s.narrow(b, v, hosts)
	}
	b, col := s.time(b, tx)
	b = append(b, hosts.text...)
	b = append(digits.Hex32(b, tx.XID), ' ')
	called := s.called(v)
	b = append(b, called.b...)
	col += hosts.columns + len("01234567 ") + called.col

	// The file name takes the room that the right-hand side leaves. Chunks and latency end at the ends of their columns,
	// which move to the left if a long status needs the room.
	status, tail := s.outcome(v)
	s.chunks = Chunks(s.chunks[:0], tx)
	var room [32]byte
	latency, width := s.latency(room[:0], tx)
	end := max(s.Width, -s.Width)
	if end <= 1 {
		end = defaultWidth
	}
	end -= 1 + max(tail, statusWidth)
	limit := end - col - (1 + len(s.chunks) + 1 + max(width, latencyWidth))
	if s.Width < 0 {
		limit = 1 << 30
	}
	start := len(b)
	b, file := subject(b, &s.path, v, max(limit, leastFile))
	if s.Width > 0 && file > limit {
		b, file = shorten(b, start, file, max(limit, 3))
	}
	col += file
	b, col = pad(b, col+1, end-latencyWidth-1-len(s.chunks))
	b = append(b, s.chunks...)
	b, _ = pad(b, col+len(s.chunks)+1, end-width)
	b = append(append(b, latency...), ' ')
	if status != "" {
		return append(b, status...)
	}
	return append(b, s.tail.b...)
}

// pad appends a space, after which col columns are taken, and fills up to a column.
func pad(b []byte, col, to int) ([]byte, int) {
	b = append(b, ' ')
	for to-col > len(blanks) {
		b = append(b, blanks...)
		col += len(blanks)
	}
	if to <= col {
		return b, col
	}
	n := len(b) + to - col
	return append(b, blanks...)[:n], to // to copy as many as there are takes no call
}

// time writes the time of a transaction.
func (s *Lister) time(b []byte, tx *transaction.Transaction) ([]byte, int) {
	if s.Clock.Format.Style == TimeNone {
		return b, 0
	}
	if s.Color {
		b = append(b, ColorDim...)
	}
	start := len(b)
	b = s.Clock.Append(b, tx.First().Time)
	col := len(b) - start
	if s.Color {
		b = append(b, ColorOff...)
	}
	return append(b, ' '), col + 1
}

// called returns program and operation in their columns. They are the same for all calls of a kind.
func (s *Lister) called(v *rpc.View) *line {
	if !s.Color {
		if k := s.kinds.Of(v); k != nil {
			l := &s.lists[k.Slot]
			if l.stamp != k.Stamp {
				*l = list{k.Stamp, line{b: l.b[:0]}}
				s.what(&l.line, v)
			}
			return &l.line
		}
	}
	s.other = line{b: s.other.b[:0]}
	s.what(&s.other, v)
	return &s.other
}

// what writes program and operation.
func (s *Lister) what(l *line, v *rpc.View) {
	from := l.col
	s.program(l, v)
	l.str(" ")
	l.pad(from + programWidth + 1)
	s.operation(l, v, math.MaxInt)
	l.str(" ")
	l.pad(from + whatWidth + 1)
}

// program writes the program name with its version.
func (s *Lister) program(l *line, v *rpc.View) {
	start := len(l.b)
	l.b = Program(l.b, v)
	l.since(start)
}

// Program appends the program name with its version: "nfs4.1". It is "rpc" if unknown.
func Program(b []byte, v *rpc.View) []byte {
	if !v.Tx.Named {
		return append(b, "rpc"...)
	}
	name := v.ProgramName()
	b = append(b, name...)
	if name == "nfs_cb" {
		return b // its version is not an NFS version
	}
	if name[0] >= '0' && name[0] <= '9' {
		b = append(b, 'v')
	}
	b = strconv.AppendUint(b, uint64(v.Tx.Version), 10)
	if minor, ok := v.MinorVersion(); ok {
		b = append(b, '.')
		b = strconv.AppendUint(b, uint64(minor), 10)
	}
	return b
}

// operationColor highlights operations that change something.
func operationColor(v *rpc.View) string {
	switch {
	case v.Tx.Backward:
		return ColorCyan
	case v.Tx.Call.Transport && len(v.Tx.Call.Header.Reads) > 0:
		return ColorYellow
	case v.Tx.Call.Transport && (len(v.Tx.Call.Header.Writes) > 0 || v.Tx.Call.Header.HasReply):
		return ColorGreen
	}
	return ColorBold
}

// Handle appends the short form of a file handle: its CRC-32, as Wireshark
// shows it.
func Handle(b, handle []byte) []byte {
	b = append(b, "fh:"...)
	return digits.Hex32(b, crc32.ChecksumIEEE(handle))
}

// subject writes what the transaction is about in at most limit columns, and returns how many it takes. In path it puts the
// path together.
func subject(b []byte, path *[]byte, v *rpc.View, limit int) ([]byte, int) {
	f := v.File()
	start := len(b)
	if f == nil {
		b = wrapped(b, v)
		return shorten(b, start, len(b)-start, limit)
	}
	// The range comes first, since the name gets the remaining room.
	text := appendRange((*path)[:0], f)
	extent := len(text)
	if f.Unnamed && v.Names != nil {
		b = v.Names.Of(v.Tx).AppendPath(b, f.Handle)
	} else {
		b = v.AppendPath(b)
	}
	width := len(b) - start
	switch {
	case width > 0:
		if name := b[start:]; !printable.Plain(name) {
			text = append(text, name...)
			b, width = Safe(b[:start], text[extent:])
		}
	case f.Handle != nil:
		b = Handle(b, f.Handle)
		width = len(b) - start
	}
	if f.Unnamed {
		b = append(b, "/?"...)
		width += 2
	}
	*path = text
	if f.To != nil {
		var w int
		b, w = Safe(append(b, " -> "...), f.To)
		width += 4 + w
	}
	if extent == 0 {
		return shorten(b, start, width, limit)
	}
	b, width = shorten(b, start, width, max(limit-extent-1, 8))
	if width > 0 {
		b = append(b, ' ')
		width++
	}
	return append(b, text[:extent]...), width + extent
}

// wrapped says what is known of a call whose arguments cannot be read, or that its status does not say.
func wrapped(b []byte, v *rpc.View) []byte {
	if v.Call().Cred.Flavor == oncrpc.AuthTLS && v.Tx.Reply.Seen() && v.ReplyErr == nil && v.Reply().Succeeded() {
		if string(v.Reply().Verf.Body) == "STARTTLS" { // RFC 9289, section 4.1
			return append(b, "(TLS offered)"...)
		}
		return append(b, "(TLS not offered)"...)
	}
	if _, ok := v.Args().(*nfs4.CbCompoundArgs); ok {
		for _, o := range v.Operations() {
			if a, ok := o.Args.(*nfs4.CB_OFFLOAD4args); ok && a.CoaOffloadInfo.CoaStatus != nfs4.NFS4_OK {
				return fmt.Appendf(b, "(%v after %d bytes)", a.CoaOffloadInfo.CoaStatus, a.CoaOffloadInfo.CoaBytesCopied)
			}
		}
	}
	switch w := v.Wrapped(); {
	case w == "init":
		return append(b, "(GSS context)"...)
	case w != "" && v.Args() == nil && v.Tx.Procedure != 0:
		return append(append(append(b, "(GSS "...), w...), ')')
	}
	return b
}

func appendRange(b []byte, f *rpc.File) []byte {
	if !f.HasRange {
		return b
	}
	b = append(b, '@')
	b = units.AppendSize(b, f.Offset)
	b = append(b, '+')
	switch {
	case f.Count == 1<<64-1:
		b = append(b, "end"...)
	default:
		b = units.AppendSize(b, f.Count)
	}
	if f.HasMoved && f.Moved != f.Count {
		b = append(b, '=')
		b = units.AppendSize(b, f.Moved)
	}
	return b
}

// Chunks appends the chunks of a call in short form: see Legend.
func Chunks(b []byte, tx *transaction.Transaction) []byte {
	switch tx.Connection.Fabric {
	case rdma.TCP:
		return append(b, "tcp"...)
	case rdma.UDP:
		return append(b, "udp"...)
	}
	h := &tx.Call.Header
	if !tx.Call.Transport || h.Plain() && !h.Cut {
		return append(b, '-')
	}
	start := len(b)
	var r *rpcrdma.Header // nil: what was used is not known
	if q := &tx.Reply.Header; tx.Reply.Seen() && tx.Reply.Transport && q.Type != rpcrdma.TypeError && !q.Cut {
		r = q
	}
	b = appendChunks(b, h, r)
	switch {
	case h.Cut:
		b = append(b, '?')
	case len(b) == start:
		b = append(b, '-')
	}
	return b
}

// appendChunks appends the chunks of a header; nothing if there are none. r is
// the header of the reply, or nil.
func appendChunks(b []byte, h, r *rpcrdma.Header) []byte {
	start := len(b)
	space := func(b []byte) []byte {
		if len(b) > start {
			b = append(b, ' ')
		}
		return b
	}
	if len(h.Call) > 0 {
		b = appendReads(b, 'Z', h.Call, h.PositionZero().Length)
	}
	if len(h.Reads) > 0 {
		for _, c := range h.ReadChunks() {
			kind := byte('R')
			if c.Position == 0 && h.Version != rpcrdma.Version2 {
				kind = 'Z'
			}
			b = appendReads(space(b), kind, c.Segments, c.Length)
		}
	}
	for i, c := range h.Writes {
		b = appendWrites(space(b), 'W', c)
		if r != nil {
			used := uint64(0)
			if i < len(r.Writes) {
				used = r.Writes[i].Length()
			}
			b = appendUsed(b, c.Length(), used)
		}
	}
	if h.HasReply {
		b = appendWrites(space(b), 'P', h.Reply)
		if r != nil {
			b = appendUsed(b, h.Reply.Length(), r.Reply.Length())
		}
	}
	return b
}

func appendReads(b []byte, kind byte, s []rpcrdma.ReadSegment, total uint64) []byte {
	equal := true
	for i := range s {
		equal = equal && s[i].Length == s[0].Length
	}
	return appendChunk(b, kind, len(s), total, equal)
}

func appendWrites(b []byte, kind byte, c rpcrdma.WriteChunk) []byte {
	equal := true
	for i := range c {
		equal = equal && c[i].Length == c[0].Length
	}
	return appendChunk(b, kind, len(c), c.Length(), equal)
}

func appendChunk(b []byte, kind byte, segments int, total uint64, equal bool) []byte {
	b = append(b, kind)
	switch {
	case segments <= 1:
		b = units.AppendSize(b, total)
	case equal:
		b = units.AppendSize(b, total/uint64(segments))
		b = append(b, 'x')
		b = strconv.AppendInt(b, int64(segments), 10)
	default:
		b = units.AppendSize(b, total)
		b = append(b, '/')
		b = strconv.AppendInt(b, int64(segments), 10)
	}
	return b
}

func appendUsed(b []byte, offered, used uint64) []byte {
	if used == offered {
		return b
	}
	b = append(b, ':')
	return units.AppendSize(b, used)
}

// latency writes the latency, and returns how many columns it takes.
func (s *Lister) latency(b []byte, tx *transaction.Transaction) ([]byte, int) {
	if !tx.Call.Seen() || !tx.Reply.Seen() {
		return append(b, '-'), 1
	}
	if start, end := tx.Call.First.Time, tx.Reply.Last.Time; end > start { // as Phases says
		return units.DurationColumns(b, rdma.Between(start, end))
	}
	return units.DurationColumns(b, 0)
}

// statusPrefixes are omitted from error names.
var statusPrefixes = [...]string{"NFS3ERR_", "NFS4ERR_", "NFSERR_", "MNT3ERR_"}

// ShortStatus is the name of an outcome without the prefix common to all names of its kind; "ok" for success.
func ShortStatus(v *rpc.View) string {
	if succeeded(v) {
		return "ok"
	}
	status := v.Status()
	switch {
	case v.Tx.State == transaction.NoReply:
		return "no reply"
	case v.Tx.ReplyLost():
		return "reply " + delivered(v.Tx.ReplyDelivery())
	case status == "" && v.ReplyErr == nil:
		return "ok?"
	case status == "":
		return "?"
	case !v.Failed():
		return "ok"
	}
	for _, p := range statusPrefixes {
		if t, ok := strings.CutPrefix(status, p); ok {
			return t
		}
	}
	return status
}

// delivered is a verdict of delivery in words.
func delivered(d transaction.Delivery) string { return strings.ReplaceAll(d.String(), "_", " ") }

// succeeded reports whether a result says so: the case of most transactions, told without names.
func succeeded(v *rpc.View) bool {
	return v.Tx.State != transaction.NoReply && !v.Tx.ReplyLost() && v.Succeeded()
}

// outcome is the status and the marks after it, with their width. Without marks it is the status alone, otherwise tail
// has all, and the status is empty.
func (s *Lister) outcome(v *rpc.View) (string, int) {
	l, tx := &s.tail, v.Tx
	status := ShortStatus(v)
	if tx.Retransmits == 0 && len(tx.Notes) == 0 && tx.State != transaction.NoCall && tx.State != transaction.Incomplete && !s.Color {
		return status, len(status)
	}
	l.b, l.col = l.b[:0], 0
	color := ColorGreen
	if status != "ok" {
		color = ColorRed
	}
	l.painted(s.Color, color, status)
	if tx.State == transaction.NoCall {
		l.str(" ")
		l.painted(s.Color, ColorYellow, "no call")
	}
	number := func(label string, n int) {
		start := len(l.b)
		l.b = append(l.b, label...)
		l.b = strconv.AppendInt(l.b, int64(n), 10)
		l.since(start)
	}
	if tx.Retransmits > 0 {
		number(" retrans=", tx.Retransmits)
	}
	if tx.State == transaction.Incomplete {
		l.str(" ")
		l.painted(s.Color, ColorYellow, "incomplete")
	}
	if n := len(tx.Notes); n > 0 {
		number(" notes=", n)
	}
	return "", l.col
}

func addrText(e rdma.End) string { return link.AddrString(e.Addr) }
