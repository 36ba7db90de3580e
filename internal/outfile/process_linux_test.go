package outfile

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// asNobody runs one test of this package as a user without privileges.
func asNobody(t *testing.T, test string) {
	t.Helper()
	// Neither the binary nor a directory of root's has to be readable for all.
	exe, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	dir, err := os.MkdirTemp("/tmp", "outfile") //nolint:usetesting // another user cannot enter that of the test
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o755))
	must(t, os.WriteFile(dir+"/test", exe, 0o755))
	must(t, os.Chmod(dir+"/test", 0o755)) // whatever the umask is
	must(t, os.Mkdir(dir+"/work", 0o755))
	must(t, os.Chown(dir+"/work", 65534, 65534))
	cmd := exec.Command(dir+"/test", "-test.run", "^"+test+"$", "-test.v")
	cmd.Dir = dir + "/work"
	cmd.Env = append(os.Environ(), "OUTFILE_DIR="+dir+"/work", "TMPDIR="+dir+"/work")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCleanup runs in its own process: nothing can be made after Cleanup.
func TestCleanup(t *testing.T) {
	if dir := os.Getenv("OUTFILE_CLEANUP"); dir != "" {
		cleanup(t, dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestCleanup$")
	cmd.Env = append(os.Environ(), "OUTFILE_CLEANUP="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"done", "old", "stream"}) {
		t.Errorf("left: %q", got)
	}
	if content(t, dir+"/old") != "old" || content(t, dir+"/done") != "done" || content(t, dir+"/stream") != "packets" {
		t.Error("contents")
	}
}

func cleanup(t *testing.T, dir string) {
	files := &Files{}
	put(t, dir+"/old", "old")
	a, err := files.Create(dir + "/old")
	must(t, err)
	b, err := files.Create(dir + "/new")
	must(t, err)
	must(t, b.Close()) // waits for its name
	c, err := files.CreateIn(dir)
	must(t, err)
	d, err := files.Create(dir + "/done")
	must(t, err)
	_, err = d.Write([]byte("done"))
	must(t, err)
	must(t, d.Commit())
	e, err := files.Stream(dir + "/stream")
	must(t, err)
	_, err = e.Write([]byte("packets"))
	must(t, err)
	temp, _, err := TempDir("outfile")
	must(t, err)
	scratch, err := Scratch(dir)
	must(t, err)
	defer scratch.Close()
	Cleanup()
	Cleanup()
	for _, f := range []*File{a, b} {
		if err := f.Commit(); err == nil {
			t.Error("a file got its name after all")
		}
	}
	if err := c.CommitNew(func(int) string { return dir + "/part" }, 1); err == nil {
		t.Error("a file got its name after all")
	}
	a.Discard()
	if _, err := files.Create(dir + "/late"); err == nil {
		t.Error("a file was made")
	}
	if _, err := os.Stat(temp); err == nil {
		t.Error("a directory is left")
	}
}
