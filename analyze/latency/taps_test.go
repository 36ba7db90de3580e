package latency

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/state"
)

func TestTwo(t *testing.T) {
	clients, _ := filepath.Glob("/work/shared/captures/*.client.pcap")
	for _, client := range clients {
		server := strings.Replace(client, ".client.pcap", ".pcap", 1)
		var f state.File
		opt := Options{Top: 5, Inline: DefaultInline}
		f.Add(unit(t, client, opt), unit(t, server, opt))
		s, err := FromUnits(f.Units())
		if err != nil {
			t.Fatal(err)
		}
		rep := s.Report()
		r := NewCollector(opt)
		src := collect(t, server, r, r.Observer(), r.Add)
		want := r.State(src).Report()
		r = NewCollector(opt)
		src = collect(t, client, r, r.Observer(), r.Add)
		cl := r.State(src).Report()
		t.Log(rep.Notes, rep.All.Count, want.All.Count, cl.All.Count, rep.All.Latency.P50, want.All.Latency.P50, cl.All.Latency.P50, len(rep.Connections), len(want.Connections), len(cl.Connections))
		os.WriteFile("/tmp/h17-a.json", reportJSON(t, rep), 0o644)
		os.WriteFile("/tmp/h17-b.json", reportJSON(t, want), 0o644)
		differ(t, filepath.Base(client), reportJSON(t, rep), reportJSON(t, want))
	}
}
