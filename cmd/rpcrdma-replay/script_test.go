package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
	"github.com/rpcrdma/toolkit/internal/testtools/krbtest"
	"github.com/rpcrdma/toolkit/replay/plan"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rpcrdma-replay": main})
}

const samples = "../../samples"

func TestScripts(t *testing.T) {
	dir, err := filepath.Abs(samples)
	if err != nil {
		t.Fatal(err)
	}
	realm := krbtest.New(t, krb5.AES256SHA1)
	var long []string
	if testing.Short() {
		long = []string{"bench", "mistakes", "resume", "sec", "serve", "wrapped"}
	}
	testscript.Run(t, testscript.Params{
		Files: clitest.Scripts(t, long...),
		Setup: func(e *testscript.Env) error {
			e.Setenv("SAMPLES", dir)
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", os.Getenv("GORACE")) // how long a program built with the race detector waits at its end
			e.Setenv("SOURCE_DATE_EPOCH", "0")
			for _, name := range []string{"KRB5_KTNAME", "KRB5CCNAME", "KRB5_CONFIG"} {
				e.Setenv(name, "")
			}
			// The keytab of a server, and caches of users with tickets for it.
			files := map[string][]byte{"server.keytab": realm.Bytes()}
			for _, who := range []string{"root", "alice"} {
				files[who+".ccache"] = krbtest.Cache(realm.Ticket(who, time.Now(), time.Hour))
			}
			for name, b := range files {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), b, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"start": start, "raid": raid, "wrap": clitest.Wrap, "damage": clitest.Damage, "snap": clitest.Snap, "setback": clitest.SetBack},
		RequireExplicitExec: true,
	})
}

// raid turns the first op of a plan that has a GETATTR into a REMOVE at the server's root that
// claims to change nothing: raid PLAN NAME.
func raid(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: raid PLAN NAME")
	}
	name := ts.MkAbs(args[0])
	text, err := os.ReadFile(name)
	ts.Check(err)
	lines := bytes.Split(text, []byte("\n"))
	at := slices.IndexFunc(lines, func(l []byte) bool {
		return bytes.HasPrefix(l, []byte(`{"op":`)) && bytes.Contains(l, []byte(`{"op":9,`))
	})
	if at < 0 {
		ts.Fatalf("%s has no GETATTR", args[0])
	}
	var line struct {
		Op *plan.Op `json:"op"`
	}
	ts.Check(json.Unmarshal(lines[at], &line))
	c := nfs4.CompoundArgs{Operations: nfs4.Operations{Ops: []nfs4.Op{
		{Number: uint32(nfs4.OP_PUTROOTFH)},
		{Number: uint32(nfs4.OP_REMOVE), Body: &nfs4.REMOVE4args{Target: []byte(args[1])}},
	}}}
	line.Op.Compound, line.Op.Args = nil, []plan.Field{{Kind: plan.FieldRaw, Bytes: c.Append(nil)}}
	line.Op.Binds, line.Op.Modifies = nil, false
	lines[at], err = json.Marshal(line)
	ts.Check(err)
	ts.Check(os.WriteFile(name, bytes.Join(lines, []byte("\n")), 0o644))
}

// start starts a server and puts the address at which it serves a fabric into
// ADDR, and those of earlier fabrics into variables of their names: start FABRIC ARGS... The server ends with its standard input.
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start FABRIC ARGS...")
	}
	bin := ""
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), string(filepath.ListSeparator)) {
		if p, err := exec.LookPath(filepath.Join(dir, "rpcrdma-replay")); err == nil {
			bin = p
			break
		}
	}
	cmd := exec.Command(bin, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var problems strings.Builder
	cmd.Stderr = &problems
	ts.Check(cmd.Start())
	rest := make(chan struct{})
	ts.Defer(func() {
		_ = in.Close()
		<-rest
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if name, addr, ok := strings.Cut(lines.Text(), ": "); ok && name != args[0] {
			ts.Setenv(strings.ToUpper(name), addr)
		}
		if addr, ok := strings.CutPrefix(lines.Text(), args[0]+": "); ok {
			ts.Setenv("ADDR", addr)
			go func() {
				defer close(rest)
				_, _ = io.Copy(io.Discard, out)
			}()
			return
		}
	}
	close(rest)
	ts.Fatalf("no server: %s", problems.String())
}
