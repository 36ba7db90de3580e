package bench_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/bench"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/providers"
)

// meter measures a server in this process.
func meter(t *testing.T, fabric, version string, e endpoint.Options) (*bench.Meter, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	server, clients, at, err := providers.Pair(providers.Options{Name: fabric, Endpoint: e}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := providers.NewServer(memory.New(memory.Options{}), providers.ServerOptions{})
	l, err := server.Listen(ctx, at, s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := clients.Dial(ctx, l.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), clients.Close(), server.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	rpc := client.RPC{Requester: r, Cred: client.Sys("bench", 0, 0)}
	var fs client.FS = client.NewV3(rpc)
	if version != "3" {
		if fs, err = client.NewV4(ctx, rpc, client.V4Options{Minor: uint32(version[2] - '0'), Owner: []byte("bench")}); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := fs.Root(ctx, "/")
	if err != nil {
		t.Fatal(err)
	}
	return &bench.Meter{FS: fs, Dir: dir, Setting: bench.Setting{Fabric: fabric, Version: version, Inline: e.InlineSend, Endpoint: e}}, ctx
}

// TestInline: without chunks, files are filled in pieces that fit, and a size that does not fit is not a failure.
func TestInline(t *testing.T) {
	m, ctx := meter(t, "iwarp", "3", endpoint.Options{Registration: endpoint.Inline, InlineSend: 4096, InlineReceive: 4096})
	for _, x := range []struct {
		size int
		fail string
	}{{512, ""}, {2048, ""}, {8192, "registration inline with 4096 bytes carries at most 3584 bytes of data"}} {
		list, err := bench.Run(ctx, []*bench.Meter{m}, bench.Job{Kind: "read", Size: x.size, Outstanding: 1, FileSize: 64 << 10, Time: 10 * time.Millisecond})
		if err != nil || len(list) != 1 || list[0].Err != x.fail || (list[0].Calls > 0) != (x.fail == "") {
			t.Errorf("%d bytes: %v, %+v", x.size, err, list)
		}
	}
	if err := m.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestJobs does each job once; how fast it is says nothing here.
func TestJobs(t *testing.T) {
	for _, c := range []struct{ fabric, version string }{{"tcp", "3"}, {"iwarp", "4.1"}, {"tcp", "4.0"}, {"rocev2", "3"}} {
		t.Run(c.fabric+" "+c.version, func(t *testing.T) {
			m, ctx := meter(t, c.fabric, c.version, endpoint.Options{})
			var all []*bench.Result
			for _, kind := range []string{"read", "write", "randread", "randwrite", "fileop", "postmark", "iozone"} {
				list, err := bench.Run(ctx, []*bench.Meter{m}, bench.Job{Kind: kind, Size: 8192, Outstanding: 3, FileSize: 64 << 10, Files: 9, Time: 10 * time.Millisecond})
				if err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				all = append(all, list...)
				for _, r := range list {
					if r.Calls == 0 && !strings.HasPrefix(r.Job, "postmark") || r.Elapsed <= 0 || r.Fabric != c.fabric || r.ServerCPU >= 0 {
						t.Errorf("%+v", r)
					}
				}
				if r := list[0]; strings.HasSuffix(kind, "read") && (r.Bytes != uint64(r.Calls)*8192 || r.P50 <= 0 || r.P99 < r.P50 || r.CPUPerByte(true) >= 0) {
					t.Errorf("%+v", r)
				}
			}
			if err := m.Close(ctx); err != nil {
				t.Error(err)
			}
			outputs(t, all)
		})
	}
	m, ctx := meter(t, "tcp", "3", endpoint.Options{})
	if _, err := bench.Run(ctx, []*bench.Meter{m}, bench.Job{Kind: "sing"}); err == nil {
		t.Error("an unknown job was done")
	}
}

func outputs(t *testing.T, all []*bench.Result) {
	t.Helper()
	var table, list, svg bytes.Buffer
	if err := errors.Join(bench.Table(&table, all), bench.CSV(&list, all), bench.SVG(&svg, all)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(table.String(), "\n"); n < len(all)+3 {
		t.Errorf("%d lines of %d results:\n%s", n, len(all), table.String())
	}
	rows, err := csv.NewReader(&list).ReadAll()
	if err != nil || len(rows) != len(all)+1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if err := xml.Unmarshal(svg.Bytes(), new(struct{})); err != nil || !strings.Contains(svg.String(), "Throughput") {
		t.Errorf("no drawing: %v", err)
	}
	if err := bench.SVG(&svg, nil); err == nil {
		t.Error("nothing was drawn")
	}
}
