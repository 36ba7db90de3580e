package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// ofSeconds is a report of 100 calls in each of three of six seconds.
func ofSeconds() *Report {
	var s seconds
	for _, at := range []time.Duration{0, 2 * time.Second, 5 * time.Second} {
		for i := range 100 {
			s.add(at+time.Duration(i)*time.Millisecond, time.Duration(i+1)*time.Millisecond, i == 0, 1000)
		}
	}
	return &Report{Sources: []string{"<a.plan>"}, Setup: Setup{Server: "builtin"}, Start: time.Unix(1790000000, 0), Took: 6 * time.Second, Sent: 300, Bytes: 300000,
		Totals: map[string]int{"same": 297, "worse": 3}, Seconds: s.close(), Notes: []string{"a note"},
		Ops:        []OperationReport{{Operation: "nfs3 READ", Count: 300, Verdicts: [verdict.Count]int{verdict.Same: 297, verdict.Worse: 3}}},
		Reasons:    []ReasonReport{{Verdict: verdict.Worse, Count: 3, Reason: "READ: NFS3ERR_IO, was OK"}},
		Mismatches: []Mismatch{{Verdict: verdict.Worse, Op: 7, XID: 0xabc, What: "nfs3 READ f & g", Reasons: []string{"READ: NFS3ERR_IO, was OK"}}}}
}

func TestHTML(t *testing.T) {
	r := ofSeconds()
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Replay of &lt;a.plan&gt;", "a note", "Latency over time", "Calls per second", "Wrong replies per second", "Bytes of data per second", "NFS3ERR_IO", "READ f &amp; g", "297"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	each, list := intervals(r.Seconds)
	if each != time.Second || len(list) != 6 || list[0].Calls != 100 || list[1].Calls != 0 || list[5].Wrong != 1 || list[2].P50 < 50*time.Millisecond || list[2].P50 > 52*time.Millisecond ||
		list[2].P99 < 99*time.Millisecond || list[2].P99 > 103*time.Millisecond {
		t.Errorf("intervals of %v: %+v", each, list)
	}
	b.Reset()
	if err := (&Report{}).HTML(&b); err != nil {
		t.Errorf("a run without replies: %v", err)
	}
}

func TestParquet(t *testing.T) {
	r := ofSeconds()
	var b bytes.Buffer
	if err := r.Parquet(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[secondRow](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	x := rows[2]
	n := uint64(0)
	for _, bin := range x.Histogram {
		n += bin.Count
	}
	if x.Calls != 100 || x.Wrong != 1 || x.Bytes != 100000 || n != 100 || x.P50NS != int64(50*time.Millisecond) || !x.Start.Equal(r.Start.Add(5*time.Second)) {
		t.Errorf("%+v", x)
	}
}
