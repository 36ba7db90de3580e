package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// Box is what a process is about to be locked into.
type Box struct {
	mode  Mode
	id    *identity // nil: stays who it is
	named bool
	notes []string
}

// Open determines which user the process becomes. writes means that it will create named files.
func (o *Options) Open(writes bool) (*Box, error) {
	b := &Box{mode: o.Mode, named: o.User != ""}
	if o.Mode == Off && o.User == "" {
		return b, nil
	}
	var err error
	if b.id, err = thisProcess().choose(o.User, writes); err != nil {
		return nil, err
	}
	return b, nil
}

// Notes are remarks on what could not be given up.
func (b *Box) Notes() []string { return b.notes }

// As reports that the process is another user than the one that started it, and which; for errors about
// files.
func (b *Box) As() (name string, ok bool) {
	if b.id == nil || b.id.uid == 0 {
		return "", false
	}
	return b.id.name, true
}

// lacks decides about something that could not be given up.
func (b *Box) lacks(what string, err error) error {
	e := &Error{what, err}
	if b.mode == Require {
		return fmt.Errorf("--sandbox require: %w", e)
	}
	b.notes = append(b.notes, "not sandboxed: "+e.Error())
	return nil
}

// Drop makes the process the chosen user, without capabilities and without a
// way to get them back.
func (b *Box) Drop() error {
	if b.mode == Off && !b.named {
		return nil
	}
	dropBounding()
	if b.id != nil {
		if err := b.id.become(); err != nil {
			e := &Error{"user " + b.id.name, err}
			if b.named {
				return e // it was asked for
			}
			if err := b.lacks(e.What, e.Err); err != nil {
				return err
			}
		}
	}
	if err := dropCapabilities(); err != nil {
		if err := b.lacks("capabilities", err); err != nil {
			return err
		}
	}
	if _, err := cap.Prctlw(unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		if err := b.lacks("no_new_privs", err); err != nil {
			return err
		}
	}
	// The user is not to take the packet socket out of the process with a
	// debugger. It is one setting of all threads.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		if err := b.lacks("debuggers", err); err != nil {
			return err
		}
	}
	return nil
}

// dropBounding empties the bounding set, which needs CAP_SETPCAP. Without that -
// a program to which a capability was granted by setcap, a container - it stays:
// it is of use to programs that are executed, and no_new_privs keeps these from
// gaining anything.
func dropBounding() {
	for c := cap.Value(0); c < cap.MaxBits(); c++ {
		if cap.DropBound(c) != nil {
			return
		}
	}
}

func (id *identity) become() error {
	// Go does these for all threads, with and without cgo.
	if err := syscall.Setgroups(id.groups); err != nil {
		return fmt.Errorf("supplementary groups: %w", err)
	}
	if err := syscall.Setresgid(id.gid, id.gid, id.gid); err != nil {
		return fmt.Errorf("group %d: %w", id.gid, err)
	}
	if err := syscall.Setresuid(id.uid, id.uid, id.uid); err != nil {
		return fmt.Errorf("number %d: %w", id.uid, err)
	}
	if id.uid != 0 && syscall.Setresuid(-1, 0, -1) == nil {
		return errors.New("the way back to root is still open")
	}
	return nil
}

func dropCapabilities() error {
	if err := cap.ResetAmbient(); err != nil {
		return fmt.Errorf("ambient: %w", err)
	}
	none := cap.NewSet()
	if err := none.SetProc(); err != nil {
		return err
	}
	if d, err := cap.GetProc().Cf(none); err != nil || d != 0 {
		return errors.New("some are left")
	}
	return nil
}

// Versions of the interface of Landlock in which it learned what is promised
// here (Documentation/userspace-api/landlock.rst).
const (
	landlockFiles   = 3 // truncation, the last way to change a file
	landlockTCP     = 4
	landlockSignals = 6
)

// Confine takes files, network and dangerous system calls away, as far as they
// are not needed.
func (b *Box) Confine(n Needs) error {
	if b.mode == Off {
		return nil
	}
	for _, dir := range n.Trees {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	if err := b.writable(n); err != nil {
		return err
	}
	_, _ = time.Now().Zone() // reads /etc/localtime once
	if err := b.landlock(n); err != nil {
		return err
	}
	err := filter(n)
	if err != nil {
		return b.lacks("system calls (seccomp)", err)
	}
	return nil
}

// writable finds out whether the user that the process has become can make the
// files, before hours of capture find it out.
func (b *Box) writable(n Needs) error {
	for _, dir := range n.Series {
		if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
			return b.Explain(&os.PathError{Op: "write to", Path: dir, Err: err})
		}
	}
	for _, name := range n.Files {
		err := unix.Faccessat(unix.AT_FDCWD, name, unix.W_OK, unix.AT_EACCESS)
		if err == unix.ENOENT {
			err = unix.Faccessat(unix.AT_FDCWD, filepath.Dir(name), unix.W_OK|unix.X_OK, unix.AT_EACCESS)
		}
		if err != nil {
			return b.Explain(&os.PathError{Op: "write", Path: name, Err: err})
		}
	}
	return nil
}

// Explain adds to a file error which user may not write it, if it is not the one who started the program.
func (b *Box) Explain(err error) error {
	if b == nil {
		return err
	}
	if name, ok := b.As(); ok && errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: captures are written as user %s, since privileges are given up; name another with -Z (-Z root stays root, without capabilities)", err, name)
	}
	return err
}

// landlockVersion is another one in tests.
var landlockVersion = ll.LandlockGetABIVersion

func (b *Box) landlock(n Needs) error {
	version, err := landlockVersion()
	switch {
	case err != nil:
		if err := b.lacks("files and network", errors.New("this kernel has no Landlock, or it is not enabled (lsm=landlock,…)")); err != nil {
			return err
		}
		if b.id == nil && os.Geteuid() == 0 {
			b.notes = append(b.notes, "note: without capabilities, but as root, who owns most files: -Z USER is better")
		}
		return nil
	case version < landlockSignals:
		var what []string
		for _, x := range []struct {
			from int
			what string
		}{{landlockFiles, "truncating files"}, {landlockTCP, "TCP connections"}, {landlockSignals, "signals to other processes"}} {
			if version < x.from {
				what = append(what, x.what)
			}
		}
		if err := b.lacks(strings.Join(what, ", "), fmt.Errorf("this kernel has version %d of Landlock, %d is needed", version, landlockSignals)); err != nil {
			return err
		}
	}
	if err := landlock.V11.BestEffort().Restrict(n.rules()...); err != nil {
		return b.lacks("files and network (Landlock)", err)
	}
	return nil
}

// Rights of Landlock below a directory.
const (
	seriesRights landlock.AccessFSSet = ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSMakeReg | ll.AccessFSRemoveFile
	filesRights                       = seriesRights | ll.AccessFSReadFile | ll.AccessFSReadDir
	treesRights                       = filesRights | ll.AccessFSMakeDir | ll.AccessFSRemoveDir | ll.AccessFSRefer
)

// nameFiles are what Go's resolver reads.
var nameFiles = []string{"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf"}

// transports has the transports of the kernel's clients, which anyone may read: a capture of the kernel's events looks for new ones.
const transports = "/sys/kernel/sunrpc"

const portDNS = 53

func (n Needs) rules() []landlock.Rule {
	folders := make([]string, len(n.Files))
	for i, name := range n.Files {
		folders[i] = filepath.Dir(name)
	}
	rules := []landlock.Rule{
		landlock.PathAccess(seriesRights, n.Series...).IgnoreIfMissing(),
		landlock.PathAccess(filesRights, folders...).IgnoreIfMissing(),
		landlock.PathAccess(treesRights, n.Trees...),
		landlock.PathAccess(ll.AccessFSReadFile|ll.AccessFSReadDir, transports).IgnoreIfMissing(),
	}
	if n.Names {
		rules = append(rules,
			landlock.PathAccess(ll.AccessFSReadFile, nameFiles...).IgnoreIfMissing(),
			landlock.ConnectTCP(portDNS), landlock.ConnectSendUDP(portDNS), landlock.BindUDP(0))
	}
	return rules
}
