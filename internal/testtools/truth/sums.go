package truth

import (
	"bufio"
	"encoding/hex"
	"io"
	"slices"
	"strings"
)

// parseSums finds the lines of md5sum among others: 32 hexadecimal digits, two
// blanks, a name. md5sum marks a line whose name has escapes with a backslash.
func parseSums(r io.Reader) ([]FileSum, error) {
	var sums []FileSum
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), 1<<20)
	for s.Scan() {
		line, escaped := strings.CutPrefix(s.Text(), `\`)
		sum, name, ok := strings.Cut(line, " ")
		if !ok || len(sum) != 32 || len(name) < 2 || (name[0] != ' ' && name[0] != '*') {
			continue
		}
		if _, err := hex.DecodeString(sum); err != nil {
			continue
		}
		name = name[1:]
		if escaped {
			name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(name)
		}
		sums = append(sums, FileSum{MD5: sum, Path: strings.TrimPrefix(name, "./")})
	}
	return sums, s.Err()
}

// parseReshaped finds commands in the trace of the workload's shell that change
// a file without sending its data: SETATTR of the size, ALLOCATE, DEALLOCATE.
//
//	++ 1795239193.001353 truncate -s 5000 /mnt/d1/small
func parseReshaped(r io.Reader) ([]string, error) {
	var paths []string
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), 1<<20)
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) < 4 || strings.Trim(f[0], "+") != "" || (f[2] != "truncate" && f[2] != "fallocate") {
			continue
		}
		if p, ok := strings.CutPrefix(f[len(f)-1], mountPoint); ok && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	return paths, s.Err()
}

// parseScenario reads shell assignments: several in a line, with or without
// quotes, later ones winning, comments after " #".
func parseScenario(r io.Reader) (map[string]string, error) {
	vars := make(map[string]string)
	s := bufio.NewScanner(r)
	for s.Scan() {
		line := s.Text()
		for line = strings.TrimLeft(line, " \t"); line != "" && line[0] != '#'; line = strings.TrimLeft(line, " \t") {
			eq := strings.IndexByte(line, '=')
			if eq <= 0 || strings.ContainsAny(line[:eq], " \t\"'") {
				break
			}
			key, rest := line[:eq], line[eq+1:]
			var value string
			if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
				end := strings.IndexByte(rest[1:], rest[0])
				if end < 0 {
					break
				}
				value, line = rest[1:1+end], rest[2+end:]
			} else {
				end := strings.IndexAny(rest, " \t")
				if end < 0 {
					end = len(rest)
				}
				value, line = rest[:end], rest[end:]
			}
			if !strings.HasPrefix(key, "TRACE_") && value != "" {
				vars[key] = value
			} else {
				delete(vars, key)
			}
		}
	}
	return vars, s.Err()
}
