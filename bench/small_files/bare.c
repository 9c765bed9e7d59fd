// The least that creating and deleting small files takes: the system calls and nothing else. No
// latencies, no choice of operation, the same content for every file, errors end the program.
//
// bare DIRECTORY COUNT SIZE_BYTES prints creates and deletes a second.

#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_BYTES 10

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: bare DIRECTORY COUNT SIZE_BYTES");
	long count = atol(argv[2]);
	size_t size = atol(argv[3]);
	char *content = malloc(size), *names = malloc(count * NAME_BYTES);
	if (!content || !names)
		err(1, "malloc");
	srandom(1);
	for (size_t i = 0; i < size; i++)
		content[i] = random() >> 8;
	for (long i = 0; i < count; i++)
		snprintf(names + i * NAME_BYTES, NAME_BYTES, "f%08u", (unsigned)i);

	int parent = open(argv[1], O_RDONLY | O_DIRECTORY);
	if (parent < 0)
		err(1, "%s", argv[1]);

	double start_s = now_s();
	if (mkdirat(parent, "d0000", 0755))
		err(1, "mkdirat");
	int directory = openat(parent, "d0000", O_RDONLY | O_DIRECTORY);
	if (directory < 0)
		err(1, "openat d0000");
	for (long i = 0; i < count; i++) {
		int file = openat(directory, names + i * NAME_BYTES, O_CREAT | O_EXCL | O_WRONLY, 0644);
		if (file < 0 || write(file, content, size) != (ssize_t)size || close(file))
			err(1, "create file %ld", i);
	}
	double create_s = now_s() - start_s;

	if (syncfs(parent))
		err(1, "syncfs");

	start_s = now_s();
	for (long i = 0; i < count; i++)
		if (unlinkat(directory, names + i * NAME_BYTES, 0))
			err(1, "delete file %ld", i);
	close(directory);
	if (unlinkat(parent, "d0000", AT_REMOVEDIR))
		err(1, "delete d0000");
	double delete_s = now_s() - start_s;

	printf("%.1f %.1f\n", count / create_s, count / delete_s);
	return 0;
}
