package results

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/session"
)

// TestManyClients: a report sums up many clients, and shows those that are unusual; a few are all listed.
func TestManyClients(t *testing.T) {
	client := func(n int, calls ...uint64) session.Client {
		c := session.Client{Client: fmt.Sprintf("192.0.2.%d", n), Server: "198.51.100.1", Version: "3"}
		var all uint64
		for _, k := range calls {
			all += k
		}
		for i, k := range calls {
			c.Connections = append(c.Connections, session.Connection{ID: 10*n + i, Fabric: "rocev2", Calls: k, Share: float64(k) / float64(all)})
		}
		return c
	}
	for _, c := range []struct {
		name   string
		n      int
		uneven int // of these
		short  bool
		want   []string
		lines  int // at most
	}{
		{"few", 16, 0, true, []string{"NFSv3 client 192.0.2.16, server"}, 200},
		{"many", 5000, 0, true, []string{"5000 clients: 10000 connections, 100000 calls, 0 read, 0 written\nnone of them is unusual"}, 3},
		{"one is uneven", 5000, 1, true, []string{"1 of them is unusual", "NFSv3 client 192.0.2.1, server"}, 12},
		{"many are uneven", 5000, 100, true, []string{"the first 16 of 100 that are unusual follow"}, 150},
		{"all are wanted", 20, 0, false, []string{"NFSv3 client 192.0.2.20, server"}, 200},
	} {
		rep := &session.Report{}
		for i := range c.n {
			if i < c.uneven {
				rep.Clients = append(rep.Clients, client(i+1, 18, 1, 1))
			} else {
				rep.Clients = append(rep.Clients, client(i+1, 10, 10))
			}
		}
		var b bytes.Buffer
		p := sessionPrinter{w: &b, rep: rep, short: c.short}
		if err := p.print(); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: no %q in\n%.600s", c.name, w, b.String())
			}
		}
		if n := strings.Count(b.String(), "\n"); n > c.lines {
			t.Errorf("%s: %d lines", c.name, n)
		}
	}
}
