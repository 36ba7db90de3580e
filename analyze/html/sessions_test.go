package html

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

func sessions(t *testing.T, file string) *session.Report {
	t.Helper()
	in, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := session.New(nil)
	v := rpc.View{Names: &rpc.Names{}}
	opt := decode.Options{Observers: []decode.Observer{r.Observer()}}
	opt.Transactions.Ended = r.Ended
	d := decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		v.Learn()
		r.Transaction(&v)
	})
	if err := d.Run(in); err != nil {
		t.Fatal(err)
	}
	return r.Report([]string{filepath.Base(file)})
}

// section is the page's section on sessions, and the number of its drawings.
func section(t *testing.T, rep *session.Report) (string, int) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, latency.New(latency.Options{}).Report(latency.Source{}), rep, nil, ""); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	_, after, ok := strings.Cut(page, `<h2 id="sessions">`)
	if !ok {
		return "", 0
	}
	if !strings.Contains(page, `href="#sessions"`) {
		t.Error("nothing leads to the section")
	}
	return after, wellFormed(t, page)
}

var tags = regexp.MustCompile(`<[^>]*>`)

func TestSessions(t *testing.T) {
	for file, want := range map[string]struct {
		drawings int // slots, and two bars for each connection
		words    []string
	}{
		"rxe-nfs41-nconnect": {1 + 2*4, []string{
			"4 / 4", "slots in use, most / mean", "The busiest of 4 connections carried 1.09 times its share of the calls; by bytes, the busiest carried 1.27 times",
			"27.3 %", "CREATE_SESSION", "all slots in use for", "target of the server",
		}},
		"rxe-nfs41-trunk":   {1 + 2*2, []string{"session trunking"}},
		"rxe-nfs3-nconnect": {2 * 4, []string{"NFSv3 client 192.0.2.2, server 192.0.2.1", "The busiest of 4 connections"}},
		"rxe-nfs41-pnfs":    {0, []string{"Layouts", "Devices", "block", "sent to data servers"}},
	} {
		rep := sessions(t, "../session/testdata/"+file+".pcap.zst")
		page, drawings := section(t, rep)
		if m := outside.FindString(page); m != "" {
			t.Errorf("%s: the page refers to something outside: %s", file, m)
		}
		if want.drawings > 0 && drawings < want.drawings {
			t.Errorf("%s: %d drawings", file, drawings)
		}
		plain := tags.ReplaceAllString(page, "")
		for _, w := range want.words {
			if !strings.Contains(plain, w) {
				t.Errorf("%s: the page does not have %q", file, w)
			}
		}
		for _, n := range rep.Notes {
			if !strings.Contains(plain, n) {
				t.Errorf("%s: the page does not have the note %q", file, n)
			}
		}
	}
	if page, _ := section(t, nil); page != "" {
		t.Error("a section on nothing")
	}
}

// What is not shown is counted, and what a peer sent cannot become a part of the page's code.
func TestHostileSessions(t *testing.T) {
	const evil = `</title></script></svg>"'><script>alert(1)</script><img src=x onerror=alert(2)>` + "\x00\u202e"
	odd := map[string]uint64{evil: math.MaxUint64}
	conns := []session.Connection{
		{Client: evil, Server: evil, Fabric: evil, Bound: evil, Calls: math.MaxUint64, Share: 1, Read: math.MaxUint64, Bytes: 7, Mean: math.MaxInt64},
		{Calls: 1, Share: math.Inf(1), Bytes: -1, Mean: -1}, {Calls: 1, Share: math.NaN()},
	}
	one := session.Session{
		ID: evil, Client: evil, Server: evil, ClientID: evil, Failed: odd, Callbacks: odd, Connections: conns, Interval: 1,
		Slots: session.Slots{Full: math.MaxInt64, Time: 1, After: math.MaxUint64, Target: math.MaxUint32, Mean: math.NaN()}, BackSlots: session.Slots{Used: 1},
		Series: []session.Interval{{Highest: math.MaxUint32, Target: math.MaxUint32, Busy: math.MaxInt64}, {}, {Highest: 1}},
	}
	rep := &session.Report{Notes: []string{evil}}
	for range maxSessions + 3 {
		rep.Sessions = append(rep.Sessions, one)
		rep.Clients = append(rep.Clients, session.Client{Client: evil, Server: evil, Version: evil, Connections: conns})
		rep.Trunks = append(rep.Trunks, session.Trunk{Kind: evil, Client: evil, Server: evil, Clients: []string{evil}, Servers: []string{evil}})
	}
	for range maxRows + 5 {
		rep.Layouts = append(rep.Layouts, session.Layout{
			Path: evil, Server: evil, Type: evil, Refused: odd, Devices: []string{evil},
			IO: []*session.DataIO{{Server: evil, Reads: math.MaxUint64, Read: math.MaxUint64}},
		})
		rep.Devices = append(rep.Devices, &session.Device{ID: evil, Type: evil, Status: evil, Server: evil, Addresses: []string{evil}})
	}
	page, _ := section(t, rep)
	for _, bad := range []string{"<script>alert", "<img", "alert(2)>", "</title></script>", "\x00", "\u202e"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	for n, what := range map[int]string{3: "more sessions", 5: "more rows"} {
		if !strings.Contains(page, fmt.Sprintf("%d %s are not shown", n, what)) {
			t.Errorf("the page does not count %s", what)
		}
	}
	for _, what := range []string{"3 more clients are not shown", "3 more trunks are not shown"} {
		if !strings.Contains(page, what) {
			t.Errorf("not in the page: %s", what)
		}
	}
}
