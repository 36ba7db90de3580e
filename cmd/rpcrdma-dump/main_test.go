package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "rpcrdma-dump" { // not as a command of a script, which has its own
		os.Setenv("XDG_CONFIG_HOME", "/nonexistent") // nor the configuration of who runs the tests
	}
	testscript.Main(m, map[string]func(){"rpcrdma-dump": main})
}

const samples = "../../samples"

func TestScripts(t *testing.T) {
	dir, err := filepath.Abs(samples)
	if err != nil {
		t.Fatal(err)
	}
	var long []string
	if testing.Short() {
		long = []string{
			"backwards", "capture", "double", "export", "extcap", "fabric", "kerberos", "malformed", "mirrorcut", "oneway", "openfiles", "pager", "resume", "scrub", "sequence",
			"sessions", "snaplen", "span", "split", "state", "trackers", "unread", "wrapped",
		}
	}
	testscript.Run(t, testscript.Params{
		Files: clitest.Scripts(t, long...),
		Setup: func(e *testscript.Env) error {
			e.Setenv("SAMPLES", dir)
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", os.Getenv("GORACE")) // how long a program built with the race detector waits at its end
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cut":     cutFile,
			"replace": replaceBytes, "damage": clitest.Damage,
			"gzip":     gzipFile,
			"code":     exitCodeIs,
			"wrap":     clitest.Wrap,
			"within":   clitest.Within,
			"snap":     clitest.Snap,
			"mirror":   clitest.Mirror,
			"sentby":   clitest.SentBy,
			"double":   clitest.Double,
			"timeless": clitest.Timeless,
			"setback":  clitest.SetBack,
		},
		RequireExplicitExec: true,
	})
}
