package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

const marshal = "x-1 [000] ..... 1.0: xprtrdma_marshal: task:00000001@00000000 xid=0x00000007 hdr=28 xdr=40/0/0 pullup/inline\n" +
	"x-1 [000] ..... 1.1: xprtrdma_reply: task:00000001@00000000 xid=0x00000007 credits=64\n" +
	"x-1 [000] ..... 1.2: rpc_stats_latency: task:00000001@00000000 xid=0x00000007 nfsv3 NULL backlog=1 rtt=9916 execute=3 xprt_id=1\n"

const decode1 = "nfsd-1 [000] ..... 1.0: svcrdma_decode_rqst: cq.id=2 cid=143 xid=0x00000007 vers=1 credits=128 proc=RDMA_MSG hdrlen=28\n"

const line = `{"schema":"rpcrdma.transaction/1","time":"2026-09-21T05:33:11.1Z","xid":7,"connection":1,"fabric":"rocev2",` +
	`"client":"192.0.2.2","server":"192.0.2.1","client_endpoint":17,"server_endpoint":18,"direction":"forward","program":"nfs",` +
	`"version":3,"procedure":"NULL","status":"","call_frame":1,"reply_frame":2,"call_type":"RDMA_MSG","reply_type":"RDMA_MSG",` +
	`"credits_requested":128,"credits_granted":64,"read_chunks":[],"write_chunks":[],"written_chunks":[],"reply_chunk":null,` +
	`"written_reply_chunk":null,"rdma_reads":0,"rdma_read_bytes":0,"rdma_writes":0,"rdma_write_bytes":0,"call_bytes":40,` +
	`"reply_bytes":24,"retransmits":0,"latency_ns":{"call_transfer":1,"argument_pull":0,"server":2,"result_push":0,` +
	`"reply_transfer":1,"total":4},"state":"complete","notes":[]}`

// captures makes a folder with a capture, another of the same run at the other
// end, and one that nobody knows the truth of.
func captures(t *testing.T) string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.truth", "trace.client"), marshal, 0o644)
	write(t, filepath.Join(dir, "a.truth", "trace.server"), decode1, 0o644)
	for _, n := range []string{"a.pcap", "a.client.pcap", "a.both.pcapng", "b.pcap"} {
		write(t, filepath.Join(dir, n), "", 0o644)
	}
	return dir
}

// decoder makes a program that stands in for rpcrdma-dump.
func decoder(t *testing.T, out string, exit string) string {
	name := filepath.Join(t.TempDir(), "dump")
	write(t, name, "#!/bin/sh\nif [ \"$1\" = --extract-data ]; then : >\"$2/manifest.ndjson\"; exit 0; fi\necho '"+out+"'\nexit "+exit+"\n", 0o755)
	return name
}

func TestCommands(t *testing.T) {
	dir := captures(t)
	nd := filepath.Join(t.TempDir(), "x.ndjson")
	write(t, nd, line+"\n", 0o644)
	wrong := filepath.Join(t.TempDir(), "y.ndjson")
	write(t, wrong, strings.Replace(line, `"xid":7`, `"xid":8`, 1), 0o644)
	var compact bytes.Buffer
	if code := run([]string{"compact", filepath.Join(dir, "a.truth")}, &compact, &compact); code != 0 {
		t.Fatal(compact.String())
	}
	js := filepath.Join(t.TempDir(), "a.truth.json")
	write(t, js, compact.String(), 0o644)
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"none", nil, 2, "usage:"},
		{"unknown", []string{"frob"}, 2, "unknown command"},
		{"bad option", []string{"compare", "--frob"}, 2, "usage:"},
		{"compare", []string{"compare", "--ndjson", nd, "--truth", filepath.Join(dir, "a.truth")}, 0, "1 RPCs over RDMA, 1 matched"},
		{"compare compact", []string{"compare", "--ndjson", nd, "--truth", js}, 0, "1 RPCs over RDMA, 1 matched"},
		{"compare wrong", []string{"compare", "--ndjson", wrong, "--truth", js}, 1, "no transaction"},
		{"compare nothing", []string{"compare", "--truth", js}, 2, "usage:"},
		{"compare absent", []string{"compare", "--ndjson", nd, "--truth", js + "x"}, 1, "no such file"},
		{"compact nothing", []string{"compact"}, 2, "usage:"},
		{"folder", []string{"folder", dir, "--dump", decoder(t, line, "0")}, 0, "a.both"},
		{"folder, input cut", []string{"folder", "--dump", decoder(t, line, "3"), dir}, 0, "a.client"},
		{"folder wrong", []string{"folder", dir, "--dump", decoder(t, strings.Replace(line, `"xid":7`, `"xid":8`, 1), "0")}, 1, "extra=1 missing=1"},
		{"folder, decoder fails", []string{"folder", dir, "--dump", decoder(t, line, "1")}, 1, "failed"},
		{"folder of nothing", []string{"folder", t.TempDir(), "--dump", "x"}, 1, "no capture"},
		{"folder without decoder", []string{"folder", dir}, 2, "usage:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			code := run(c.args, &out, &out)
			if code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, c.code, c.want, out.String())
			}
		})
	}
}

func TestFindCaptures(t *testing.T) {
	list, err := findCaptures(captures(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range list {
		got = append(got, c.name+" "+filepath.Base(c.truth)+" "+string(rune('0'+c.taps)))
	}
	if want := "a.both a.truth 2,a.client a.truth 1,a a.truth 1"; strings.Join(got, ",") != want {
		t.Errorf("%q, want %q", strings.Join(got, ","), want)
	}
}
