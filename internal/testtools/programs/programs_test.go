package programs

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func TestBuild(t *testing.T) {
	dir := t.TempDir()
	if err := Build(dir, "./examples/congest"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(dir, "congest"), "../../../samples/rocev2-rping.pcap").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if err := Build(dir, "./examples/none"); err == nil {
		t.Error("no error for a package that is not there")
	}
}
