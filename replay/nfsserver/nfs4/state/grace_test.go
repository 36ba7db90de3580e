package state

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

type forgetful struct{}

func (forgetful) Add(*Identity) error { return nil }
func (forgetful) Remove(*Identity)    {}

func TestGrace(t *testing.T) {
	const lease = 90 * time.Second
	one, two := Identity{Owner: "one"}, Identity{Owner: "two"}
	for name, c := range map[string]struct {
		opt      Options
		complete []string
		late     string        // comes back at the end
		lasts    time.Duration // without, or with the one who is late
		stranger Status        // reclaims
	}{
		"none":                 {stranger: nfs4.NFS4ERR_NO_GRACE},
		"all are believed":     {opt: Options{Grace: time.Minute}, lasts: time.Minute, stranger: nfs4.NFS4_OK},
		"nobody was here":      {opt: Options{Grace: time.Minute, Stable: forgetful{}}, stranger: nfs4.NFS4ERR_NO_GRACE},
		"a lease":              {opt: Options{Stable: forgetful{}, Recovered: []Identity{one, two}}, lasts: lease, stranger: nfs4.NFS4ERR_RECLAIM_BAD},
		"one has completed":    {opt: Options{Stable: forgetful{}, Recovered: []Identity{one, two}}, complete: []string{"one"}, lasts: lease, stranger: nfs4.NFS4ERR_RECLAIM_BAD},
		"all have completed":   {opt: Options{Stable: forgetful{}, Recovered: []Identity{one, two}}, complete: []string{"one", "two"}, stranger: nfs4.NFS4ERR_NO_GRACE},
		"hosts never have":     {opt: Options{Stable: forgetful{}, Recovered: []Identity{one}, RecoveredHosts: true}, complete: []string{"one"}, lasts: lease, stranger: nfs4.NFS4ERR_RECLAIM_BAD},
		"one is late":          {opt: Options{Stable: forgetful{}, Recovered: []Identity{one}}, late: "one", lasts: lease + lease/2 - 1, stranger: nfs4.NFS4ERR_RECLAIM_BAD},
		"a stranger is late":   {opt: Options{Stable: forgetful{}, Recovered: []Identity{one}}, late: "three", lasts: lease, stranger: nfs4.NFS4ERR_RECLAIM_BAD},
		"at most a lease more": {opt: Options{Grace: 10, Stable: forgetful{}, Recovered: []Identity{one}}, late: "one", lasts: 9 + lease/2, stranger: nfs4.NFS4ERR_RECLAIM_BAD},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1e9, 0)
			g := &Grace{leases: &leases{length: lease, now: func() time.Time { return now }}}
			g.begin(&c.opt)
			for _, name := range c.complete {
				g.complete(&Client{owner: name})
			}
			if st := g.check(&Client{owner: "stranger"}, true); st != c.stranger {
				t.Errorf("a stranger reclaims: %s", st)
			}
			start := now
			if c.late != "" {
				now = g.latest.Add(-1)
				g.back(&Client{owner: c.late})
			}
			if now = start.Add(max(c.lasts-1, 0)); g.Active() != (c.lasts > 0) {
				t.Errorf("it has ended after %v", c.lasts-1)
			}
			if now = start.Add(c.lasts); g.Active() {
				t.Errorf("it lasts longer than %v", c.lasts)
			}
		})
	}
}
