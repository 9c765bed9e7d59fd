mkfs.xfs -f -d su=64k,sw=4 /dev/sdb
mount -o noatime,logbsize=256k /dev/sdb /mnt
echo none > /sys/block/sdb/queue/scheduler
tune2fs -O ^has_journal /dev/sdc
