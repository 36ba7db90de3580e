package nfs4

import (
	"encoding/binary"
	"math/bits"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Bitmap4 is a bitmap4 as on the wire, without its count: words of four bytes, bit n in word
// n/32, the least significant bit first (RFC 7530, section 2.1). It aliases the message; only the
// message's size limits the number of words.
type Bitmap4 []byte

// NewBitmap4 returns a bitmap with these bits, in memory of its own.
func NewBitmap4(numbers ...uint32) Bitmap4 {
	var b Bitmap4
	for _, n := range numbers {
		b = b.With(n)
	}
	return b
}

// With returns a copy of b in which bit n is set.
func (b Bitmap4) With(n uint32) Bitmap4 {
	c := make(Bitmap4, max(len(b), int(n/32+1)*4))
	copy(c, b)
	w := c[n/32*4:]
	binary.BigEndian.PutUint32(w, binary.BigEndian.Uint32(w)|1<<(n%32))
	return c
}

// Word returns word i, 0 if the bitmap has fewer.
func (b Bitmap4) Word(i int) uint32 {
	if i < 0 || i >= len(b)/4 {
		return 0
	}
	return binary.BigEndian.Uint32(b[i*4:])
}

// Has reports whether bit n is set.
func (b Bitmap4) Has(n uint32) bool { return b.Word(int(n/32))>>(n%32)&1 != 0 }

// Next returns the first set bit that is n or higher, -1 if there is none.
func (b Bitmap4) Next(n int) int {
	for i := n / 32; i < len(b)/4; i++ {
		w := b.Word(i)
		if i == n/32 {
			w &= ^uint32(0) << (n % 32)
		}
		if w != 0 {
			return i*32 + bits.TrailingZeros32(w)
		}
	}
	return -1
}

// Uint64 returns bits 0 to 63.
func (b Bitmap4) Uint64() uint64 { return uint64(b.Word(0)) | uint64(b.Word(1))<<32 }

// Decode refills b.
func (b *Bitmap4) Decode(r *xdr.Reader) {
	*b = r.Fixed(r.Count(0, 4) * 4)
}

// Skip passes over a bitmap.
func (*Bitmap4) Skip(r *xdr.Reader, off uint) uint { return r.SkipArray(off, 0, 4) }

// Redact copies a bitmap.
func (*Bitmap4) Redact(x *xdr.Redactor) { x.Words() }

// Append appends the count and the words.
func (b Bitmap4) Append(to []byte) []byte {
	to = xdr.AppendUint32(to, uint32(len(b)/4))
	return append(to, b[:len(b)/4*4]...)
}

// EncodedSize is the number of bytes that Append appends.
func (b Bitmap4) EncodedSize() int { return 4 + len(b)/4*4 }

// maxNamedBits is how many set bits a list of names shows. There are fewer than 90 attributes; a
// longer list is not useful to a reader.
const maxNamedBits = 128

// bitNames lists the set bits: by name, or by number where there is none.
func bitNames(b Bitmap4, name func(uint32) string) string {
	var buf [512]byte
	out := buf[:0]
	for i, n := b.Next(0), 0; i >= 0; i, n = b.Next(i+1), n+1 {
		if n > 0 {
			out = append(out, '|')
		}
		if n == maxNamedBits {
			out = append(out, "..."...)
			break
		}
		if s := name(uint32(i)); s != "" {
			out = append(out, s...)
		} else {
			out = strconv.AppendInt(out, int64(i), 10)
		}
	}
	return string(out)
}

func (b Bitmap4) walk(v xdr.Visitor, field string, name func(uint32) string) {
	names := ""
	if _, ok := v.(xdr.Nameless); !ok {
		names = bitNames(b, name)
	}
	v.Flags(field, b.Uint64(), names)
}

// AttrBitmap4 is a set of attributes.
type AttrBitmap4 struct{ Bitmap4 }

// String lists the attributes: "type|change|size".
func (b AttrBitmap4) String() string { return bitNames(b.Bitmap4, AttrName) }

// WalkField visits the set as a mask. Its number holds attributes 0 to 63
// only, its symbols all of them.
func (b AttrBitmap4) WalkField(v xdr.Visitor, field string) { b.walk(v, field, AttrName) }

// OpBitmap4 is a set of operations.
type OpBitmap4 struct{ Bitmap4 }

// String lists the operations: "BIND_CONN_TO_SESSION|EXCHANGE_ID".
func (b OpBitmap4) String() string { return bitNames(b.Bitmap4, opSymbol) }

// WalkField visits the set as a mask.
func (b OpBitmap4) WalkField(v xdr.Visitor, field string) { b.walk(v, field, opSymbol) }

// NotifyBitmap4 is a set of notify_type4.
type NotifyBitmap4 struct{ Bitmap4 }

// WalkField visits the set as a mask.
func (b NotifyBitmap4) WalkField(v xdr.Visitor, field string) {
	b.walk(v, field, func(n uint32) string { return NotifyType4(n).Symbol() })
}

// DeviceidNotifyBitmap4 is a set of notify_deviceid_type4.
type DeviceidNotifyBitmap4 struct{ Bitmap4 }

// WalkField visits the set as a mask.
func (b DeviceidNotifyBitmap4) WalkField(v xdr.Visitor, field string) {
	b.walk(v, field, func(n uint32) string { return NotifyDeviceidType4(n).Symbol() })
}

// IoAdviseBitmap4 is a set of IO_ADVISE_type4.
type IoAdviseBitmap4 struct{ Bitmap4 }

// WalkField visits the set as a mask.
func (b IoAdviseBitmap4) WalkField(v xdr.Visitor, field string) {
	b.walk(v, field, func(n uint32) string { return IO_ADVISE_type4(n).Symbol() })
}

// RecallAnyBitmap4 is the set of what CB_RECALL_ANY asks back.
type RecallAnyBitmap4 struct{ Bitmap4 }

var recallAnyNames = [...]string{
	RCA4_TYPE_MASK_RDATA_DLG:        "RDATA_DLG",
	RCA4_TYPE_MASK_WDATA_DLG:        "WDATA_DLG",
	RCA4_TYPE_MASK_DIR_DLG:          "DIR_DLG",
	RCA4_TYPE_MASK_FILE_LAYOUT:      "FILE_LAYOUT",
	RCA4_TYPE_MASK_BLK_LAYOUT:       "BLK_LAYOUT",
	RCA4_TYPE_MASK_OBJ_LAYOUT_MIN:   "OBJ_LAYOUT_MIN",
	RCA4_TYPE_MASK_OBJ_LAYOUT_MAX:   "OBJ_LAYOUT_MAX",
	RCA4_TYPE_MASK_OTHER_LAYOUT_MIN: "OTHER_LAYOUT_MIN",
	RCA4_TYPE_MASK_OTHER_LAYOUT_MAX: "OTHER_LAYOUT_MAX",
	RCA4_TYPE_MASK_FF_LAYOUT_MIN:    "FF_LAYOUT_MIN",
	RCA4_TYPE_MASK_FF_LAYOUT_MAX:    "FF_LAYOUT_MAX",
}

// WalkField visits the set as a mask.
func (b RecallAnyBitmap4) WalkField(v xdr.Visitor, field string) {
	b.walk(v, field, func(n uint32) string { return nameOf(recallAnyNames[:], n) })
}

// ThresholdBitmap4 is the set of hints of a threshold_item4.
type ThresholdBitmap4 struct{ Bitmap4 }

var thresholdNames = [...]string{
	TH4_READ_SIZE:    "read_size",
	TH4_WRITE_SIZE:   "write_size",
	TH4_READ_IOSIZE:  "read_iosize",
	TH4_WRITE_IOSIZE: "write_iosize",
}

// WalkField visits the set as a mask.
func (b ThresholdBitmap4) WalkField(v xdr.Visitor, field string) {
	b.walk(v, field, func(n uint32) string { return nameOf(thresholdNames[:], n) })
}

func nameOf(names []string, n uint32) string {
	if uint64(n) < uint64(len(names)) {
		return names[n]
	}
	return ""
}

// The bitmaps of open_arguments4 (RFC 9754, section 4): what a server's OPEN supports.

// OpenArgsAccessBitmap4 is a set of share_access values.
type OpenArgsAccessBitmap4 struct{ Bitmap4 }

// WalkField visits the set as a mask.
func (b OpenArgsAccessBitmap4) WalkField(v xdr.Visitor, field string) {
	b.walk(v, field, func(n uint32) string { return nameOf([]string{"", "READ", "WRITE", "BOTH"}, n) })
}

// OpenArgsDenyBitmap4 is a set of share_deny values.
type OpenArgsDenyBitmap4 struct{ Bitmap4 }

// WalkField visits the set as a mask.
func (b OpenArgsDenyBitmap4) WalkField(v xdr.Visitor, field string) {
	b.walk(v, field, func(n uint32) string { return nameOf([]string{"NONE", "READ", "WRITE", "BOTH"}, n) })
}

// OpenArgsWantBitmap4 is a set of the wants in share_access.
type OpenArgsWantBitmap4 struct{ Bitmap4 }

var openArgsWantNames = [...]string{
	3:  "ANY_DELEG",
	4:  "NO_DELEG",
	5:  "CANCEL",
	17: "SIGNAL_DELEG_WHEN_RESRC_AVAIL",
	18: "PUSH_DELEG_WHEN_UNCONTENDED",
	20: "DELEG_TIMESTAMPS",
	21: "OPEN_XOR_DELEGATION",
}

// WalkField visits the set as a mask.
func (b OpenArgsWantBitmap4) WalkField(v xdr.Visitor, field string) {
	b.walk(v, field, func(n uint32) string { return nameOf(openArgsWantNames[:], n) })
}

// OpenArgsClaimBitmap4 is a set of open_claim_type4.
type OpenArgsClaimBitmap4 struct{ Bitmap4 }

// WalkField visits the set as a mask.
func (b OpenArgsClaimBitmap4) WalkField(v xdr.Visitor, field string) {
	b.walk(v, field, func(n uint32) string { return OpenClaimType4(n).Symbol() })
}

// OpenArgsCreateBitmap4 is a set of createmode4.
type OpenArgsCreateBitmap4 struct{ Bitmap4 }

// WalkField visits the set as a mask.
func (b OpenArgsCreateBitmap4) WalkField(v xdr.Visitor, field string) {
	b.walk(v, field, func(n uint32) string { return Createmode4(n).Symbol() })
}
