package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

// TestNoKeyboard has a terminal to show a screen on, but none that keys could come from: there are tables.
func TestNoKeyboard(t *testing.T) {
	bin := clitest.Binary(t, "rpcrdma-top")
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), bin, "-r", "../../samples/rocev2-nfs41-recall.pcap", "--speed", "max")
	cmd.Stdout, cmd.Stderr = slave, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that no terminal controls it; its standard input is /dev/null
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	shown, _ := io.ReadAll(master) // its end is an error, EIO
	if err := cmd.Wait(); err != nil || !strings.Contains(stderr.String(), "no terminal for a live screen") || !bytes.Contains(shown, []byte("Operations")) {
		t.Errorf("%v: %s%s", err, stderr.String(), shown)
	}
}
