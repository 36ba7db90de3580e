package run

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/report"
)

// TestEnough: a preparation that has mostly failed ends the run.
func TestEnough(t *testing.T) {
	for _, x := range []struct {
		done report.Prepared
		want string
	}{
		{report.Prepared{}, ""},
		{report.Prepared{Files: 2, Failed: 2}, ""},
		{report.Prepared{Directories: 1, Files: 7, Failed: 17}, "17 of 25 objects could not be made, so that most calls would fail (CREATE: NFS3ERR_ACCES): --incomplete goes on"},
	} {
		got := ""
		if err := enough(&x.done, "CREATE: NFS3ERR_ACCES"); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%+v: %q", x.done, got)
		}
	}
}
