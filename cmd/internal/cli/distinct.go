package cli

import "os"

// Distinct refuses a file that is named twice, also by a link or another spelling: what is in it would count twice. flag is what
// the names are given with, or empty. Pipes are not compared: they never give the same bytes twice.
func Distinct(flag string, names []string) error {
	if flag != "" {
		flag += " "
	}
	type seen struct {
		name string
		info os.FileInfo
	}
	var files map[any][]seen // by what identifies a file, as far as it is known
	std := false
	for _, name := range names {
		if name == "-" {
			if std {
				return Usagef("standard input (-) is named more than once")
			}
			std = true
			continue
		}
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue // reading it tells
		}
		id := identity(info)
		for _, other := range files[id] {
			switch {
			case !os.SameFile(other.info, info):
			case other.name == name:
				return Usagef("%s%s is named more than once", flag, name)
			default:
				return Usagef("%s%s and %s%s are the same file: name it once", flag, other.name, flag, name)
			}
		}
		if files == nil {
			files = make(map[any][]seen)
		}
		files[id] = append(files[id], seen{name, info})
	}
	return nil
}
