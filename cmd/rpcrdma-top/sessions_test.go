package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/session"
)

const fourConnections = "../analyze/session/testdata/rxe-nfs41-nconnect.pcap.zst"

// TestSessionsScreen compares the view of sessions, in the middle and at the end.
func TestSessionsScreen(t *testing.T) {
	for _, size := range []struct {
		name          string
		width, height int
	}{{"80x24", 80, 24}, {"140x40", 140, 40}} {
		s := newScript(t, fourConnections, monitor.Options{Interval: 100 * time.Millisecond})
		x := newScreen(t, s, size.width, size.height)
		x.press("8")
		x.has("no call of NFS yet")
		s.run(900)
		x.frame()
		x.golden("sessions." + size.name)
		s.run(math.MaxUint64)
		x.press("t")
		x.frame()
		x.has("0/4", "4 of 4 connections carry calls; busiest 1.09 times its share, 1.27 by bytes")
		x.press("enter")
		if x.view != transactions || s.filter != "connection in {1, 2, 3, 4}" {
			t.Errorf("view %d, filter %q", x.view, s.filter)
		}
	}
	s := newScript(t, "../analyze/session/testdata/rxe-nfs3-nconnect.pcap.zst", monitor.Options{})
	x := newScreen(t, s, 100, 30)
	x.press("8", "t")
	s.run(math.MaxUint64)
	x.frame()
	x.has("NFSv3", "4 of ")
}

// What peers sent stays in its place, and what there is no room for is counted.
func TestHostileSessions(t *testing.T) {
	const evil = "\x1b[2Jclient\n\u202e"
	s := newScript(t, bulk, monitor.Options{})
	var conns []session.Connection
	for i := range 64 {
		conns = append(conns, session.Connection{ID: i, Client: "192.0.2.2", Server: "192.0.2.1", Bound: "use", Calls: math.MaxUint64, Share: math.NaN(), Bytes: math.Inf(1), Read: math.MaxUint64, Mean: math.MaxInt64})
	}
	s.snap.Sessions = []session.Use{{
		Number: 1, ID: strings.Repeat("0", 32), Owner: evil, Limit: math.MaxUint32, InUse: math.MaxInt32, Connections: conns, Past: []float64{math.NaN(), 1, math.Inf(1)},
		Now: session.Tally{Time: 1, Full: math.MaxInt64, Area: math.MaxInt64, Calls: math.MaxUint64, Bytes: math.MaxUint64, After: math.MaxUint64},
	}}
	s.snap.SessionsRest = 7
	x := newScreen(t, s, 80, 24)
	x.press("8")
	if v := strip(x.View()); strings.ContainsAny(v, "\u202e") || strings.Contains(x.View(), "\x1b[2J") {
		t.Errorf("%q", v)
	}
	x.has("1 of 8", " more")
	for w := range 50 {
		x.width, x.height = 3*w, w
		x.check()
	}
}
