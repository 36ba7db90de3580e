//go:build linux && cgo && seccomp

package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// allowed are the system calls that a confined program may use: those of the Go
// runtime and of the C library under it, and what is done with files and sockets
// that are open. What is not in this list "does not exist" (ENOSYS): whatever a
// later Go runtime or C library tries that these do not name, it has a way
// around for kernels that are older than the call. That keeps a list of what is
// allowed from breaking with their next version.
var allowed = []string{
	// memory
	"brk", "madvise", "mincore", "mremap", "munmap",
	// threads, waiting, time
	"clock_getres", "clock_gettime", "clock_nanosleep", "exit", "exit_group", "futex", "futex_time64", "futex_waitv",
	"get_robust_list", "getcpu", "getpid", "gettid", "gettimeofday", "membarrier", "nanosleep", "restart_syscall", "rseq",
	"sched_getaffinity", "sched_yield", "set_robust_list", "set_tid_address", "time",
	// signals
	"pause", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "sigaltstack", "sigreturn",
	// timers: of profiles, too
	"getitimer", "setitimer", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime",
	"timerfd_create", "timerfd_gettime", "timerfd_settime",
	// who am I
	"getegid", "geteuid", "getgid", "getgroups", "getppid", "getresgid", "getresuid", "getrlimit", "getrusage", "getuid",
	"prlimit64", "sysinfo", "times", "ugetrlimit", "uname",
	// files; which ones, Landlock and permissions decide
	"access", "chdir", "close", "close_range", "copy_file_range", "creat", "dup", "dup2", "dup3", "faccessat", "faccessat2",
	"fadvise64", "fadvise64_64", "fallocate", "fchmod", "fcntl", "fcntl64", "fdatasync", "flock", "fstat", "fstat64",
	"fstatat64", "fstatfs", "fsync", "ftruncate", "ftruncate64", "getcwd", "getdents", "getdents64", "link", "linkat",
	"_llseek", "lseek", "lstat", "lstat64", "mkdir", "mkdirat", "newfstatat", "open", "openat", "openat2", "pipe", "pipe2",
	"pread64", "preadv", "pwrite64", "pwritev", "read", "readlink", "readlinkat", "readv", "rename", "renameat",
	"renameat2", "rmdir", "sendfile", "sendfile64", "splice", "stat", "stat64", "statfs", "statx", "sync_file_range",
	"truncate", "truncate64", "umask", "unlink", "unlinkat", "utimensat", "write", "writev",
	// waiting for files and sockets
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2",
	"_newselect", "poll", "ppoll", "ppoll_time64", "pselect6", "select",
	// sockets that are open, and what they accept
	"accept", "accept4", "getpeername", "getrandom", "getsockname", "getsockopt", "listen", "recv", "recvfrom", "recvmmsg", "recvmsg",
	"send", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
}

// denied are refused with EPERM instead, so that error messages are true.
var denied = []string{
	"execve", "execveat", "fork", "vfork", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd",
	"socket", "socketpair", "bind", "connect", "mount", "umount2", "move_mount", "fsopen", "open_tree", "pivot_root", "chroot",
	"unshare", "setns", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "keyctl", "add_key", "request_key",
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
	"setuid", "setgid", "setresuid", "setresgid", "setreuid", "setregid", "setgroups", "capset", "chmod", "fchmodat", "chown",
	"fchown", "fchownat", "lchown", "mknod", "mknodat", "open_by_handle_at", "name_to_handle_at", "personality",
}

// condition allows a call if an argument is a value, or has bits of a mask set
// so. Several for the same call are alternatives.
type condition struct {
	name  string
	arg   uint
	op    seccomp.ScmpCompareOp
	value []uint64
}

// addressing name the receiver of a datagram. A socket of local datagrams, even
// a connected one, would reach every other such socket of the system with them;
// Landlock restricts that only since its version 9.
var addressing = []string{"sendto", "sendmsg", "sendmmsg"}

// resolving are allowed where names of hosts are looked up.
var resolving = []string{"connect", "bind"}

func conditions(n Needs) []condition {
	equal := func(name string, arg uint, values ...uint64) (list []condition) {
		for _, v := range values {
			list = append(list, condition{name, arg, seccomp.CompareEqual, []uint64{v}})
		}
		return list
	}
	bits := func(name string, arg uint, mask, want uint64) condition {
		return condition{name, arg, seccomp.CompareMaskedEqual, []uint64{mask, want}}
	}
	self := uint64(os.Getpid())
	flags := uint(0)
	if runtime.GOARCH == "s390x" {
		flags = 1
	}
	list := []condition{
		bits("clone", flags, unix.CLONE_THREAD, unix.CLONE_THREAD), // no processes
		bits("mmap", 2, unix.PROT_EXEC, 0),                         // no code that was not there
		bits("mmap2", 2, unix.PROT_EXEC, 0),
		bits("mprotect", 2, unix.PROT_EXEC, 0),
	}
	// Signals to itself: the runtime preempts with them.
	list = append(list, equal("tgkill", 0, self)...)
	list = append(list, equal("kill", 0, self)...)
	list = append(list, equal("prctl", 0, unix.PR_SET_VMA, unix.PR_SET_NAME, unix.PR_GET_NAME)...)
	// Of terminals their size and mode, but not TIOCSTI, which types into the
	// shell; of packet sockets the name and the state of an interface.
	list = append(list, equal("ioctl", 1,
		unix.TCGETS, unix.TCSETS, unix.TCSETSW, unix.TCSETSF, unix.TIOCGWINSZ, unix.TIOCGPGRP, unix.TIOCINQ,
		unix.SIOCGIFNAME, unix.SIOCGIFFLAGS)...)
	if n.Names { // to a server of DNS
		list = append(list, equal("socket", 0, unix.AF_INET, unix.AF_INET6)...)
	}
	return list
}

// filter loads the filter of system calls into all threads.
func filter(n Needs) error {
	f, err := seccomp.NewFilter(seccomp.ActErrno.SetReturnCode(int16(unix.ENOSYS)))
	if err != nil {
		return err
	}
	defer f.Release()
	if api, err := seccomp.GetAPI(); err != nil || api < 2 {
		return fmt.Errorf("a filter of all threads at once needs Linux 3.17 (libseccomp: level %d of its interface)", api)
	}
	// A call that this processor does not have, or libseccomp does not know, has
	// no number, and is left out: forbidden.
	add := func(name string, action seccomp.ScmpAction, conditions ...seccomp.ScmpCondition) error {
		call, err := seccomp.GetSyscallFromName(name)
		if err != nil {
			return nil
		}
		if err := f.AddRuleConditional(call, action, conditions); err != nil {
			return fmt.Errorf("rule for %s: %w", name, err)
		}
		return nil
	}
	names := slices.Clone(allowed)
	if n.Datagrams {
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(addressing, name) })
		for _, name := range addressing {
			if err := add(name, seccomp.ActErrno.SetReturnCode(int16(unix.EPERM))); err != nil {
				return err
			}
		}
	}
	if n.Names {
		names = append(names, resolving...)
	}
	for _, name := range names {
		if err := add(name, seccomp.ActAllow); err != nil {
			return err
		}
	}
	for _, c := range conditions(n) {
		names = append(names, c.name)
		cond, err := seccomp.MakeCondition(c.arg, c.op, c.value...)
		if err != nil {
			return fmt.Errorf("rule for %s: %w", c.name, err)
		}
		if err := add(c.name, seccomp.ActAllow, cond); err != nil {
			return err
		}
	}
	for _, name := range denied {
		if slices.Contains(names, name) { // in part: the rest does not exist
			continue
		}
		if err := add(name, seccomp.ActErrno.SetReturnCode(int16(unix.EPERM))); err != nil {
			return err
		}
	}
	return f.Load()
}
