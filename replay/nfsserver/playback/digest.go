package playback

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Degrees of equality of calls, the strictest first.
const (
	exact = iota
	sessionless
	loose

	degrees
)

// digest hashes a call's arguments. It visits the fields in wire order, and leaves out those
// that its degree ignores.
type digest struct {
	hash   maphash.Hash
	degree int
	skip   int // depth of the structure that is left out; 0 is none
	depth  int
}

// sum digests the arguments of a call.
func (d *digest) sum(seed maphash.Seed, program, version, procedure uint32, args xdr.Message, degree int) uint64 {
	d.hash.SetSeed(seed)
	d.degree, d.skip, d.depth = degree, 0, 0
	d.number(uint64(program)<<32 | uint64(version))
	d.number(uint64(procedure))
	if args != nil {
		args.Walk(d)
	}
	return d.hash.Sum64()
}

// made are types that clients make up: left out if loose.
var made = map[string]bool{
	"SEQUENCE4args": true, "stateid4": true, "client_owner4": true, "nfs_client_id4": true, "cb_client4": true,
	"state_owner4": true, "open_owner4": true, "lock_owner4": true, "open_to_lock_owner4": true, "exist_lock_owner4": true,
	"nfs_impl_id4": true, "channel_attrs4": true, "callback_sec_parms4": true, "state_protect4_a": true,
}

// fresh are the names of such fields.
var fresh = map[string]bool{
	"verf": true, "verifier": true, "createverf": true, "cva_verf": true, "cookieverf": true, "setclientid_confirm": true,
	"clientid": true, "client_id": true, "csa_clientid": true, "dca_clientid": true, "csa_sequence": true, "csa_flags": true,
	"csa_cb_program": true, "dsa_sessionid": true, "bctsa_sessid": true, "sessionid": true, "seqid": true, "open_seqid": true,
	"lock_seqid": true, "callback_ident": true, "tag": true, "obj_ctime": true, "atime": true, "mtime": true,
	"dircount": true, "maxcount": true,
}

func (d *digest) leaves(name string) bool {
	return d.skip != 0 || d.degree == loose && fresh[name]
}

func (d *digest) number(v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	_, _ = d.hash.Write(b[:])
}

// Begin opens a structure.
func (d *digest) Begin(name, typ string, index int) {
	d.depth++
	if d.skip != 0 {
		return
	}
	_, _ = d.hash.WriteString(typ)
	if d.degree >= sessionless && typ == "SEQUENCE4args" || d.degree == loose && (made[typ] || fresh[name]) {
		d.skip = d.depth
	}
}

// End closes one.
func (d *digest) End() {
	if d.skip == d.depth {
		d.skip = 0
	}
	d.depth--
}

// Uint is a field, as are those below.
func (d *digest) Uint(name string, v uint64) {
	if !d.leaves(name) {
		d.number(v)
	}
}

// Int is a field.
func (d *digest) Int(name string, v int64) { d.Uint(name, uint64(v)) }

// Bool is a field.
func (d *digest) Bool(name string, v bool) {
	if v {
		d.Uint(name, 1)
	} else {
		d.Uint(name, 0)
	}
}

// Enum is a field.
func (d *digest) Enum(name string, v uint32, _ string) { d.Uint(name, uint64(v)) }

// Flags is a field.
func (d *digest) Flags(name string, v uint64, _ string) { d.Uint(name, v) }

// Bytes is a field.
func (d *digest) Bytes(name string, v []byte) {
	if !d.leaves(name) {
		d.number(uint64(len(v)))
		_, _ = d.hash.Write(v)
	}
}

// String is a field.
func (d *digest) String(name string, v []byte) { d.Bytes(name, v) }

// Data is a field of which only the length counts, since a replay may not have the captured
// contents.
func (d *digest) Data(name string, v xdr.Data) { d.Uint(name, uint64(v.Length)) }

// Time is a field.
func (d *digest) Time(name string, sec int64, nsec uint32) {
	if !d.leaves(name) {
		d.number(uint64(sec))
		d.number(uint64(nsec))
	}
}

// callKeys digests a captured call. It returns false if the call is not complete.
func (r *Recording) callKeys(v *rpc.View, keys *[degrees]uint64) bool {
	m := &v.Tx.Call
	if v.Args() == nil {
		if len(m.Payload) != m.PayloadLength {
			return false
		}
		key := r.raw(v.Call().Program, v.Call().Version, v.Call().Procedure, m.Payload[v.CallBody().Offset:])
		for i := range keys {
			keys[i] = key
		}
		return true
	}
	if v.ArgsErr != nil && !(v.ArgsCut && dataIsCut(v)) {
		return false
	}
	var d digest
	for degree := range keys {
		keys[degree] = d.sum(r.seed, v.Call().Program, v.Call().Version, v.Call().Procedure, v.Args(), degree)
	}
	return true
}

// dataIsCut reports whether nothing but bytes of the last data item is missing
// of the arguments.
func dataIsCut(v *rpc.View) bool {
	var list dataList
	v.Args().Walk(&list)
	if len(list) == 0 {
		return false
	}
	last := list[len(list)-1]
	if last.Chunk != 0 || len(last.Inline) >= int(last.Length) {
		return false
	}
	at, ok := offset(v.CallBody().Data, 0, last.Inline)
	return ok && at+(int(last.Length)+3)&^3 >= v.CallBody().Length
}

// raw digests the arguments of an unknown program.
func (r *Recording) raw(program, version, procedure uint32, args []byte) uint64 {
	var d digest
	d.sum(r.seed, program, version, procedure, nil, exact)
	_, _ = d.hash.Write(args)
	return d.hash.Sum64()
}
