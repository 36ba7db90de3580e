// Package outfile makes the files that commands write, in a way that harms nothing of the user's:
//
//   - An output is refused if it is the same file as one of the inputs, by
//     device and inode: through symbolic links, hard links, another spelling, or
//     a redirected standard stream. Two outputs of one command are not the same
//     file either.
//   - Create writes to a temporary file in the same directory and gives it its
//     name at Commit. Until then, and after any failure, the name is absent or
//     is still the old file.
//   - Stream is for captures, which others read while they grow: it writes under
//     the final name, but what it opens is checked before it is cut to length
//     zero.
//
// What the name stands for decides how it is written:
//
//   - A new file gets the usual mode, 0666 less the umask. One that is replaced
//     passes on its permissions and, where that is allowed, its owner. It has to
//     be writable itself, as if it were written in place. Other names (hard
//     links) of the old file keep the old contents.
//   - A symbolic link is followed: the file that it leads to is replaced, the
//     link stays. A link of another user in a directory with the sticky bit that
//     all may write to is refused, as Linux does with fs.protected_symlinks.
//   - FIFOs, devices, /dev/stdout and /dev/fd/N are written directly: there is
//     nothing to rename. Directories and sockets are refused.
//   - If the directory does not allow a temporary file, that is an error: writing
//     in place would break the promise above. Standard output always works.
//
// A program that ends by a signal calls Cleanup first, which removes what is temporary. SIGKILL, and a crash
// of the machine, can leave a file .NAME.<hex>.tmp behind, and nothing else.
package outfile
