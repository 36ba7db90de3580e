package plan

import (
	"errors"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// FieldKind says what a Field is, and how it is encoded.
type FieldKind string

// Kinds of fields. The first group is literal; the value of the others comes
// from a Resolver.
const (
	FieldU32    FieldKind = "u32"     // Value
	FieldU64    FieldKind = "u64"     // Value
	FieldText   FieldKind = "text"    // Text or Bytes, an opaque of variable length
	FieldRaw    FieldKind = "raw"     // Bytes: XDR as it is
	FieldState0 FieldKind = "special" // Text: a special state id: "anonymous", "bypass", "current", "invalid"

	FieldName       FieldKind = "name"       // Text or Bytes: a component; Ref is the object that it leads to, if known. Opaque
	FieldHandle     FieldKind = "handle"     // Ref: object. Opaque
	FieldState      FieldKind = "state"      // Ref: state. 16 bytes; see Zero and Value
	FieldClient     FieldKind = "client"     // Ref: client. clientid4, 8 bytes
	FieldVerifier   FieldKind = "verifier"   // Ref: client. Its boot verifier, 8 bytes
	FieldOwnerID    FieldKind = "owner_id"   // Ref: client. Its owner string. Opaque
	FieldConfirm    FieldKind = "confirm"    // Ref: client. setclientid_confirm, 8 bytes
	FieldCreateSeq  FieldKind = "create_seq" // Ref: client. csa_sequence, 4 bytes
	FieldSession    FieldKind = "session"    // Ref: session. 16 bytes
	FieldSequence   FieldKind = "sequence"   // Ref: session. sequence id of the slot, 4 bytes
	FieldSlot       FieldKind = "slot"       // Ref: session; Value: slot as captured, 4 bytes
	FieldHighest    FieldKind = "highest"    // Ref: session; Value: highest slot as captured, 4 bytes
	FieldSeqid      FieldKind = "seqid"      // Ref: owner. Next in its sequence, 4 bytes
	FieldCookie     FieldKind = "cookie"     // Op, Value: cookie of that entry of that op's reply, 8 bytes; see Zero
	FieldCookieVerf FieldKind = "cookieverf" // Op: cookie verifier of that op's reply, 8 bytes
	FieldCtime      FieldKind = "ctime"      // Ref: object. Its time of last change now, nfstime3, 8 bytes
	FieldCallback   FieldKind = "callback"   // Text: "tcp 192.0.2.2.3.4": cb_location as captured. Two opaques
	FieldLockHost   FieldKind = "lock_host"  // Ref: owner of kind "nlm". The name of its host. Opaque
	FieldLockOwner  FieldKind = "lock_owner" // Ref: the same. Its opaque name. Opaque
	FieldSvid       FieldKind = "svid"       // Ref: the same. Its number, 4 bytes
	FieldData       FieldKind = "data"       // Data. Opaque that may travel in a chunk
)

// Field is a piece of the arguments, in the order of the wire.
type Field struct {
	// N is the field's name in the protocol. It has no effect.
	N     string    `json:"n,omitempty"`
	Kind  FieldKind `json:"k"`
	Value uint64    `json:"v,omitempty"`
	Text  string    `json:"t,omitempty"`
	Bytes []byte    `json:"b,omitempty"` // base64; Text if that is UTF-8
	Ref   int       `json:"ref,omitempty"`
	Op    int       `json:"op,omitempty"`
	// Zero: a state id is sent with seqid 0 (NFSv4.1: the most recent one).
	// Otherwise Value is how far the seqid lagged behind the latest that the
	// client knew; 0 as a rule. Of a cookie: the client continued after the last entry.
	Zero bool     `json:"z,omitempty"`
	Data *Payload `json:"data,omitempty"`
}

// Payload is data to be written.
type Payload struct {
	Length uint32 `json:"length"`
	// Source: Captured bytes are at At of the side file. Pattern is what
	// Object has at Offset.
	Source PayloadMode `json:"source"`
	At     int64       `json:"at,omitempty"`
	Object int         `json:"object,omitempty"`
	Offset uint64      `json:"offset,omitempty"`
	Hash   string      `json:"hash,omitempty"` // of the bytes as captured (HashData)
	// Text holds the bytes themselves: the target of a symlink.
	Text []byte `json:"text,omitempty"`
}

// Resolver gives symbols their values.
type Resolver interface {
	// Append appends the value of a field that is not literal, in XDR.
	Append(dst []byte, o *Op, f *Field) ([]byte, error)
	// Data returns the bytes of a FieldData. They must stay until the call is
	// done.
	Data(o *Op, f *Field) ([]byte, error)
}

// ErrField says that a plan holds a field of an unknown kind.
var ErrField = errors.New("unknown kind of field")

// AppendArgs appends the arguments in XDR, except for the bytes of FieldData:
// these it appends to items, with their positions. dst begins with the RPC
// header, so that positions count from there (RFC 8166, section 3.4.4).
func (o *Op) AppendArgs(dst []byte, items []transport.Item, r Resolver) ([]byte, []transport.Item, error) {
	var err error
	if o.Compound == nil {
		return o.appendFields(dst, items, o.Args, r)
	}
	if b := o.Compound.TagBytes; b != nil {
		dst = xdr.AppendOpaque(dst, b)
	} else {
		dst = xdr.AppendOpaque(dst, []byte(o.Compound.Tag))
	}
	dst = xdr.AppendUint32(dst, o.Compound.Minor)
	dst = xdr.AppendUint32(dst, uint32(len(o.Compound.Ops)))
	for i := range o.Compound.Ops {
		c := &o.Compound.Ops[i]
		dst = xdr.AppendUint32(dst, c.Op)
		if dst, items, err = o.appendFields(dst, items, c.Args, r); err != nil {
			return dst, items, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return dst, items, nil
}

// AppendReduced is AppendArgs for who only reads the arguments: of data it tells where
// they are missing, as xdr.Reader.ReduceCall wants it. Positions count from the start of
// the arguments, so that dst has to be empty.
func (o *Op) AppendReduced(dst []byte, reduced []xdr.Reduced, r Resolver) ([]byte, []xdr.Reduced, error) {
	dst, items, err := o.AppendArgs(dst, nil, r)
	for i := range items {
		reduced = append(reduced, xdr.Reduced{Position: items[i].Position, Length: uint32(len(items[i].Data))})
	}
	return dst, reduced, err
}

func (o *Op) appendFields(dst []byte, items []transport.Item, fields []Field, r Resolver) ([]byte, []transport.Item, error) {
	for i := range fields {
		f := &fields[i]
		var err error
		switch f.Kind {
		case FieldU32:
			dst = xdr.AppendUint32(dst, uint32(f.Value))
		case FieldU64:
			dst = xdr.AppendUint64(dst, f.Value)
		case FieldText:
			dst = xdr.AppendOpaque(dst, f.Opaque())
		case FieldRaw:
			dst = append(dst, f.Bytes...)
		case FieldState0:
			dst, err = appendSpecial(dst, f.Text)
		case FieldData:
			var b []byte
			if b, err = r.Data(o, f); err == nil {
				moved := 0
				for j := range items {
					moved += (len(items[j].Data) + 3) &^ 3
				}
				dst = xdr.AppendUint32(dst, uint32(len(b)))
				items = append(items, transport.Item{Position: uint32(len(dst) + moved), Data: b})
			}
		default:
			dst, err = r.Append(dst, o, f)
		}
		if err != nil {
			return dst, items, fmt.Errorf("field %s: %w", f.N, err)
		}
	}
	return dst, items, nil
}

// Opaque is the content of a text.
func (f *Field) Opaque() []byte {
	if f.Bytes != nil {
		return f.Bytes
	}
	return []byte(f.Text)
}

// special are the state ids with a meaning of their own (RFC 8881, section
// 8.2.3): seqid, and the byte that fills the rest.
var special = map[string]struct {
	seqid uint32
	fill  byte
}{
	"anonymous": {0, 0},
	"bypass":    {0xffffffff, 0xff},
	"current":   {1, 0},
	"invalid":   {0xffffffff, 0},
}

// SpecialState is the name of a state id with a meaning of its own, as a field of
// the kind FieldState0 has it; empty if it has none.
func SpecialState(seqid uint32, other [12]byte) string {
	for name, s := range special {
		ok := seqid == s.seqid
		for _, b := range other {
			ok = ok && b == s.fill
		}
		if ok {
			return name
		}
	}
	return ""
}

func appendSpecial(dst []byte, name string) ([]byte, error) {
	s, ok := special[name]
	if !ok {
		return dst, fmt.Errorf("unknown special state id %q", name)
	}
	dst = xdr.AppendUint32(dst, s.seqid)
	for range 12 {
		dst = append(dst, s.fill)
	}
	return dst, nil
}
