package judge

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestPostOpAttributes: a server may omit attributes, but those that it sends must be right.
func TestPostOpAttributes(t *testing.T) {
	res := func(mode uint32, fileid uint64) *nfs3.ACCESS3res {
		r := &nfs3.ACCESS3res{}
		r.Resok.Access = 1
		r.Resok.ObjAttributes.AttributesFollow = true
		r.Resok.ObjAttributes.Attributes = nfs3.Fattr3{Type: nfs3.NF3REG, Mode: mode, Fileid: fileid}
		return r
	}
	none := res(0, 0)
	none.Resok.ObjAttributes = nfs3.PostOpAttr{}
	for _, c := range []struct {
		name       string
		want, have *nfs3.ACCESS3res
		different  string
		equivalent bool
	}{
		{"the same", res(0o644, 1), res(0o644, 1), "", false},
		{"another number", res(0o644, 1), res(0o644, 2), "", false},
		{"another mode", res(0o644, 1), res(0o600, 1), "mode", false},
		{"left out", res(0o644, 1), none, "", true},
		{"added", none, res(0o644, 1), "", true},
	} {
		var v comparison
		v.reset()
		v.want.fill(c.want)
		v.have.fill(c.have)
		v.run()
		if c.different == "" && len(v.different) > 0 || c.different != "" && (len(v.different) != 1 || v.different[0].At.Field != c.different) {
			t.Errorf("%s: %+v differs", c.name, v.different)
		}
		if got := v.equivalent.has(verdict.Optional); got != c.equivalent {
			t.Errorf("%s: equivalent: %v", c.name, v.equivalent)
		}
	}
}

// attr is a reply to GETATTR.
func attr(change func(*nfs3.Fattr3)) *nfs3.GETATTR3res {
	r := &nfs3.GETATTR3res{}
	a := &r.Resok.ObjAttributes
	*a = nfs3.Fattr3{Type: nfs3.NF3REG, Mode: 0o644, Nlink: 1, Size: 10, Used: 4096, Fileid: 7}
	if change != nil {
		change(a)
	}
	return r
}

func TestCompare(t *testing.T) {
	cases := map[string]struct {
		have      *nfs3.GETATTR3res
		different int
	}{
		"same":       {attr(nil), 0},
		"its own":    {attr(func(a *nfs3.Fattr3) { a.Fileid, a.Used, a.Ctime.Seconds = 9, 0, 5 }), 0},
		"size":       {attr(func(a *nfs3.Fattr3) { a.Size = 11 }), 1},
		"two fields": {attr(func(a *nfs3.Fattr3) { a.Size, a.Mode = 11, 0 }), 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var x comparison
			x.reset()
			x.want.fill(attr(nil))
			x.have.fill(c.have)
			x.run()
			if len(x.different) != c.different || x.equivalent != 0 {
				t.Errorf("%+v, %v", x.different, x.equivalent)
			}
		})
	}
	t.Run("directory", func(t *testing.T) {
		dir := func(size uint64) *nfs3.GETATTR3res {
			return attr(func(a *nfs3.Fattr3) { a.Type, a.Size = nfs3.NF3DIR, size })
		}
		var x comparison
		x.reset()
		x.want.fill(dir(4096))
		x.have.fill(dir(80))
		x.run()
		if len(x.different) != 0 || !x.equivalent.has(verdict.DirectorySize) {
			t.Errorf("%+v, %v", x.different, x.equivalent)
		}
	})
	t.Run("type bits in a mode", func(t *testing.T) {
		mode := func(m uint32) *nfs3.GETATTR3res { return attr(func(a *nfs3.Fattr3) { a.Mode = m }) }
		for now, want := range map[uint32]string{0o100644: "", 0o100755: "0755, was 0644"} {
			var x comparison
			x.reset()
			x.want.fill(mode(0o644))
			x.have.fill(mode(now))
			x.run()
			got := ""
			for i := range x.different {
				got += x.different[i].Now + ", was " + x.different[i].Was
			}
			if got != want {
				t.Errorf("%o: %q, want %q", now, got, want)
			}
		}
	})
	t.Run("ignored", func(t *testing.T) {
		x := comparison{ignore: map[string]bool{"size": false, "bogus": false}}
		x.reset()
		x.want.fill(attr(nil))
		x.have.fill(attr(func(a *nfs3.Fattr3) { a.Size = 5 }))
		x.run()
		if len(x.different) != 0 {
			t.Errorf("%+v", x.different)
		}
		if got := (&Judge{cmp: x}).Unmet(); len(got) != 1 || got[0] != "bogus" {
			t.Errorf("fields that no reply has: %q", got)
		}
	})
}

func TestEntriesInAnyOrder(t *testing.T) {
	list := func(names ...string) *nfs3.READDIR3res {
		r := &nfs3.READDIR3res{}
		for i, n := range names {
			r.Resok.Reply.Entries = append(r.Resok.Reply.Entries, nfs3.Entry3{Fileid: uint64(i), Name: []byte(n), Cookie: uint64(i)})
		}
		return r
	}
	var x comparison
	x.reset()
	x.want.fill(list(".", "..", "a", "b", "c"))
	x.have.fill(list("c", "a", "d"))
	x.run()
	if !slices.Equal(x.missing, []string{"b"}) || !slices.Equal(x.extra, []string{"d"}) || len(x.different) != 0 {
		t.Errorf("missing %q, extra %q, different %+v", x.missing, x.extra, x.different)
	}
}

func TestSameUser(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"0", "root", true}, {"root@local", "0", true}, {"1000", "1000", true}, {"u@x", "u@y", true},
		{"u@x", "1000", true}, {"1000", "0", false}, {"0", "u@x", false}, {"a@x", "b@x", false},
	} {
		if sameUser(c.a, c.b) != c.want || sameUser(c.b, c.a) != c.want {
			t.Errorf("%q and %q: want %v", c.a, c.b, c.want)
		}
	}
}

// TestMustFail: a refusal that programs rely on must be one here, too.
func TestMustFail(t *testing.T) {
	for _, c := range []struct {
		op     *plan.Op
		status uint32
		want   bool
	}{
		{&plan.Op{}, uint32(nfs3.NFS3ERR_NOENT), true},
		{&plan.Op{}, uint32(nfs3.NFS3ERR_EXIST), true},
		{&plan.Op{}, uint32(nfs3.NFS3ERR_ACCES), true},
		{&plan.Op{}, uint32(nfs3.NFS3ERR_NOSPC), false},
		{&plan.Op{}, uint32(nfs3.NFS3ERR_JUKEBOX), false},
		{&plan.Op{Compound: &plan.Compound{}}, uint32(nfs4.NFS4ERR_NOENT), true},
		{&plan.Op{Compound: &plan.Compound{}}, uint32(nfs4.NFS4ERR_DENIED), true},
		{&plan.Op{Compound: &plan.Compound{}}, uint32(nfs4.NFS4ERR_ACCESS), true},
		{&plan.Op{Compound: &plan.Compound{}}, uint32(nfs4.NFS4ERR_NOTSUPP), false},
	} {
		if mustFail(c.op, c.status) != c.want {
			t.Errorf("%d of %+v: want %v", c.status, c.op, c.want)
		}
	}
}

func (s codeSet) has(c verdict.Code) bool { return s&(1<<c) != 0 }
