package run_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/run"
)

// refuses3 is a server without some ways of creating a file.
func refuses3(modes ...nfs3.Createmode3) *wireKind {
	return &wireKind{refuse: func(args xdr.Message) xdr.Message {
		if a, ok := args.(*nfs3.CREATE3args); ok {
			for _, m := range modes {
				if a.How.Mode == m {
					return &nfs3.CREATE3res{Status: nfs3.NFS3ERR_NOTSUPP}
				}
			}
		}
		return nil
	}}
}

// unplussed is a server without READDIRPLUS.
var unplussed = &wireKind{refuse: func(args xdr.Message) xdr.Message {
	if _, ok := args.(*nfs3.READDIRPLUS3args); ok {
		return &nfs3.READDIRPLUS3res{Status: nfs3.NFS3ERR_NOTSUPP}
	}
	return nil
}}

// unmasked is a server without mode_umask, and says so in supported_attrs.
var unmasked = &wireKind{
	call: func(args xdr.Message) (done bool) {
		c, ok := args.(*nfs4.CompoundArgs)
		if !ok {
			return false
		}
		refuse := func(f *nfs4.Fattr4) {
			if f.Attrmask.Has(nfs4.FATTR4_MODE_UMASK) {
				f.Attrmask.Bitmap4, f.AttrVals, done = nfs4.NewBitmap4(nfs4.FATTR4_ARCHIVE), make([]byte, 4), true
			}
		}
		for i := range c.Ops {
			switch a := c.Ops[i].Body.(type) {
			case *nfs4.CREATE4args:
				refuse(&a.Createattrs)
			case *nfs4.OPEN4args:
				refuse(&a.Openhow.How.Createattrs)
				refuse(&a.Openhow.How.ChCreateboth.CvaAttrs)
			}
		}
		return done
	},
	change: func(_ *proxy, _, res xdr.Message) bool {
		return supports(res, func(n int) bool { return n != nfs4.FATTR4_MODE_UMASK })
	},
}

// supports leaves those attributes in supported_attrs that a server has, and reports whether there is such a list.
func supports(res xdr.Message, has func(n int) bool) (done bool) {
	c, ok := res.(*nfs4.CompoundRes)
	if !ok {
		return false
	}
	for i := range c.Ops {
		g, ok := c.Ops[i].Body.(*nfs4.GETATTR4res)
		var a nfs4.Attrs
		if !ok || g.Status != 0 || a.Decode(&g.Resok4.ObjAttributes) != nil || !a.Has(nfs4.FATTR4_SUPPORTED_ATTRS) {
			continue
		}
		var less nfs4.Bitmap4
		for n := a.SupportedAttrs.Next(0); n >= 0; n = a.SupportedAttrs.Next(n + 1) {
			if has(n) {
				less = less.With(uint32(n))
			}
		}
		a.SupportedAttrs.Bitmap4 = less
		g.Resok4.ObjAttributes, done = a.Fattr4(), true
	}
	return done
}

// young is the first attribute that the server aged does not have.
const young = nfs4.FATTR4_SEC_LABEL

// aged is a server from before RFC 9754 that refuses what it does not know with INVAL.
var aged = &wireKind{
	call: func(args xdr.Message) (done bool) {
		c, ok := args.(*nfs4.CompoundArgs)
		if !ok {
			return false
		}
		for i := range c.Ops {
			switch a := c.Ops[i].Body.(type) {
			case *nfs4.GETATTR4args:
				if a.AttrRequest.Next(young) >= 0 {
					a.AttrRequest.Bitmap4, done = nfs4.NewBitmap4(nfs4.FATTR4_TIME_MODIFY_SET), true
				}
			case *nfs4.OPEN4args:
				if a.ShareAccess >= nfs4.OPEN4_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS {
					a.ShareAccess, done = 0, true
				}
			}
		}
		return done
	},
	change: func(_ *proxy, _, res xdr.Message) bool { return supports(res, func(n int) bool { return n < young }) },
}

// TestAdapted: what a server does not support is asked for in another way, once it is known, and the calls that depend on it are sent.
func TestAdapted(t *testing.T) {
	for _, x := range []struct {
		name, sample string
		kind         *wireKind
		most         int // strikes: the first calls find out, the others know
	}{
		{"exclusive create", "rocev2-nfs3-basic", refuses3(nfs3.EXCLUSIVE), 5},
		{"exclusive and guarded create", "rocev2-nfs3-basic", refuses3(nfs3.EXCLUSIVE, nfs3.GUARDED), 6},
		{"READDIRPLUS", "rocev2-nfs3-basic", unplussed, 3},
		{"mode_umask", "rocev2-nfs42-basic", unmasked, 40},
		{"attributes and wishes that are young", "../replay/run/testdata/deleg-cur", aged, 12},
		{"those, and layouts", "../replay/run/testdata/deleg-times", aged, 20},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := load(t, sample(t, x.sample), planner.Options{Payload: plan.Pattern})
			r, strikes := against(t, w, wrong{wire: x.kind}, nil)
			if strikes == 0 || strikes > x.most {
				t.Errorf("%d calls refused", strikes)
			}
			if !r.Explained() || r.NotDone != 0 || r.Totals[verdict.NotSent.String()] > 0 {
				t.Errorf("%v, %d not done", r.Totals, r.NotDone)
			}
			for _, m := range r.Mismatches {
				if !m.Verdict.Fine() {
					t.Errorf("op %d %s: %s %q", m.Op, m.What, m.Verdict, m.Reasons)
				}
			}
			for _, f := range r.ReadBack.Wrong {
				t.Errorf("read back: %s: %s", f.Path, f.Reason)
			}
		})
	}
}

// TestPatience: a server that puts calls off for ever ends the run.
func TestPatience(t *testing.T) {
	w := load(t, sample(t, "rocev2-nfs3-basic"), planner.Options{Payload: plan.Pattern})
	jukebox := &wireKind{refuse: func(args xdr.Message) xdr.Message {
		if _, ok := args.(*nfs3.WRITE3args); ok {
			return &nfs3.WRITE3res{Status: nfs3.NFS3ERR_JUKEBOX}
		}
		return nil
	}}
	r, _ := against(t, w, wrong{wire: jukebox}, func(o *run.Options) { o.Patience, o.Retries = 20*time.Millisecond, 0 })
	if want := "the server has put off 3 calls for longer than 20ms, the latest with NFS3ERR_JUKEBOX"; r.Stopped != want {
		t.Errorf("%q", r.Stopped)
	}
	for _, m := range r.Mismatches {
		if m.Verdict == verdict.Worse && !slices.Equal(m.Reasons, []string{"NFS3ERR_JUKEBOX, was OK"}) {
			t.Errorf("%s: %q", m.What, m.Reasons)
		}
	}
}
