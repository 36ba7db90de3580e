package guard

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Check says whether a call may be sent: nil, or a *Refused.
func (g *Guard) Check(m *transport.Message) error {
	_, r := g.check(m)
	if r != nil {
		return r
	}
	return nil
}

// check also returns what the guard will learn from the reply.
func (g *Guard) check(m *transport.Message) (lesson, *Refused) {
	c, ok := g.checkers.Get().(*checker)
	if !ok {
		c = &checker{args: map[*xdr.Procedure]xdr.Message{}}
	}
	c.lesson, c.walk = lesson{}, ops.Walk[file, space]{Space: space{g}}
	r := c.call(g, m)
	l := c.lesson
	if cap(c.encoded) > maxKept {
		c.encoded = nil // one huge call must not keep its memory
	}
	g.checkers.Put(c)
	return l, r
}

// maxKept is how many bytes of memory are kept for the next check.
const maxKept = 2 << 20

// checker is the memory of one check. It is reused.
type checker struct {
	header  oncrpc.Call
	sys     oncrpc.Sys
	reader  xdr.Reader
	args    map[*xdr.Procedure]xdr.Message
	reduced []xdr.Reduced
	encoded []byte
	values  values
	attrs   nfs4.Attrs
	act     ops.Act
	walk    ops.Walk[file, space]
	lesson  lesson
}

func (c *checker) call(g *Guard, m *transport.Message) *Refused {
	if r := c.decodeHeader(m.Stream); r != nil {
		return r
	}
	h := &c.header
	proc := nfs.Lookup(h.Program, h.Version).Procedure(h.Procedure)
	e := ops.Procedure(h.Program, h.Version, h.Procedure)
	if proc == nil || e == nil {
		return &Refused{Reason: Unknown, What: fmt.Sprintf("procedure %d of program %d, version %d", h.Procedure, h.Program, h.Version)}
	}
	args := c.args[proc]
	if args == nil {
		args = proc.NewArgs()
		c.args[proc] = args
	}
	if r := c.decodeArgs(proc.Name, args, m); r != nil {
		return r
	}
	if e.Class == ops.Composed {
		return c.compound(g, args)
	}
	e.Act(args, &c.act)
	if r := c.judge(g, proc.Name, args); r != nil {
		return r
	}
	if what := g.foreignHost(args); what != "" {
		return &Refused{Reason: Foreign, What: proc.Name, Detail: what}
	}
	c.lesson.ofProcedure(g, h, &c.act)
	return nil
}

// decodeHeader decodes the RPC header (RFC 5531, section 9). The transport sets the XID.
func (c *checker) decodeHeader(b []byte) *Refused {
	h := &c.header
	if err := h.Decode(b, len(b)); err != nil {
		return &Refused{Reason: Malformed, Detail: err.Error()}
	}
	if c.encoded = h.Append(c.encoded[:0]); !bytes.HasPrefix(b, c.encoded) {
		return &Refused{Reason: Ambiguous, Detail: "its RPC header"}
	}
	switch {
	case h.Verf.Flavor != oncrpc.AuthNone || len(h.Verf.Body) > 0:
		return &Refused{Reason: Credential, Detail: "verifier " + h.Verf.Flavor.String()}
	case h.Cred.Flavor == oncrpc.AuthNone && len(h.Cred.Body) == 0:
		return nil
	case h.Cred.Flavor != oncrpc.AuthSys:
		// RPCSEC_GSS may hide the arguments, and others are not decoded.
		return &Refused{Reason: Credential, Detail: h.Cred.Flavor.String()}
	case !c.sys.Decode(h.Cred.Body):
		return &Refused{Reason: Credential, Detail: "malformed AUTH_SYS"}
	}
	if c.encoded = c.sys.Append(c.encoded[:0]); !bytes.Equal(c.encoded, h.Cred.Body) {
		return &Refused{Reason: Ambiguous, Detail: "its credential"}
	}
	return nil
}

// decodeArgs decodes the arguments and makes sure that nothing is left over: they must encode
// to the same bytes, with the same items in chunks.
func (c *checker) decodeArgs(name string, args xdr.Message, m *transport.Message) *Refused {
	at := c.header.Size()
	body := m.Stream[at:]
	c.reduced = c.reduced[:0]
	for i := range m.Items {
		c.reduced = append(c.reduced, xdr.Reduced{Position: m.Items[i].Position, Length: uint32(len(m.Items[i].Data))})
	}
	r := &c.reader
	r.Reset(body, len(body))
	r.StartAt(uint32(at))
	r.ReduceCall(c.reduced)
	args.Decode(r)
	if err := r.Err(); err != nil {
		return &Refused{Reason: Malformed, What: name, Detail: err.Error()}
	}
	// This also finds bytes that are left over or missing.
	if c.encoded = args.Append(c.encoded[:0]); !bytes.Equal(c.encoded, body) {
		return &Refused{Reason: Ambiguous, What: name, Detail: "at offset " + strconv.Itoa(at+differ(c.encoded, body))}
	}
	c.values = values{items: m.Items}
	args.Walk(&c.values)
	switch v := &c.values; {
	case v.length:
		return &Refused{Reason: Ambiguous, What: name, Detail: "the length of data in a chunk"}
	case v.chunks != len(m.Items):
		return &Refused{Reason: Ambiguous, What: name, Detail: fmt.Sprintf("%d of %d chunks are where data belong", v.chunks, len(m.Items))}
	case v.undefined:
		return &Refused{Reason: Undefined, What: name, Detail: fmt.Sprintf("%s %d", v.field, v.value)}
	}
	return nil
}

// differ returns the first place where two byte strings differ.
func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// judge decides on one procedure or operation, whose act is c.act.
func (c *checker) judge(g *Guard, name string, args xdr.Message) *Refused {
	a := &c.act
	outside := Outside
	switch a.Class {
	case ops.Nothing:
		return nil
	case ops.Holds:
		outside = InTheWay
	case ops.Changes:
		if !g.opt.Write {
			return &Refused{Reason: ReadOnly, What: name}
		}
	default:
		return &Refused{Reason: NeverReplayed, What: name}
	}
	places := a.Places()
	if len(places) == 0 {
		return &Refused{Reason: outside, What: name}
	}
	for i := range places {
		p := &places[i]
		if p.Named && !ops.PlainName(p.Name) {
			return &Refused{Reason: Elsewhere, What: name, Detail: strconv.Quote(string(p.Name))}
		}
		f := c.file(g, p)
		if f.inside || makesDirectory(args) && g.mayMake(f.handle, p.Name) {
			continue
		}
		return &Refused{Reason: outside, What: name}
	}
	return nil
}

// file returns the object of a place, or the directory of its name.
func (c *checker) file(g *Guard, p *ops.Place) file {
	switch p.File {
	case ops.Given:
		if c.ofVersion2() {
			return file{} // no handle of NFSv2 is known
		}
		return space{g}.Handle(p.Handle)
	case ops.Current:
		return c.walk.Current
	case ops.Saved:
		return c.walk.Saved
	}
	return file{}
}

// ofVersion2 reports whether a call's handles are of 32 bytes, which may by
// accident be those of something else in other versions.
func (c *checker) ofVersion2() bool {
	h := &c.header
	return h.Program == nfs2.NFS_PROGRAM && h.Version == nfs2.NFS_VERSION ||
		h.Program == nfsacl.NFS_ACL_PROGRAM && h.Version == nfsacl.NFS_ACL_V2
}

// makesDirectory reports whether a call with these arguments makes a directory.
func makesDirectory(args xdr.Message) bool {
	switch m := args.(type) {
	case *nfs3.MKDIR3args:
		return true
	case *nfs4.CREATE4args:
		return m.Objtype.Type == nfs4.NF4DIR
	}
	return false
}
